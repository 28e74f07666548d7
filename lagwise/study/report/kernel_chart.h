#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "lagwise/encodings/encoding.h"
#include "lagwise/report/chart.h"

namespace lagwise {

/// The kernel an encoding puts on every lag (encodings/kernel_by_lag.h), of every head:
/// its mean and its spread over draws.
struct Kernel {
  at::Tensor mean, spread;  ///< [H, lags]; the spread is one standard deviation
  int draws = 1;            ///< 1 where nothing is drawn
};

/// At lags 0 .. lags - 1; `first`: the draw whose steps are counted on from; `drawn`:
/// is told which part of the draws is done.
Kernel kernel_of(Encoding& encoding, const Layer& layer, const Draw& first, int draws,
                 int64_t lags, const std::function<void(double)>& drawn = {});

/// A curve a head, over lag + 1 on a logarithmic axis, the training length marked.
report::Chart kernel_chart(const std::string& title, const Kernel& kernel,
                           int64_t trained);

}  // namespace lagwise
