#pragma once

#include "lagwise/kernels/linear_attention.h"
#include "lagwise/ops/heads.h"
#include "lagwise/ops/linear_call.h"

namespace lagwise::ops {

/// The decay of one head, for a pass whose keys carry the channels.
/// `decay` is call.decay, dense.
template <class T>
kernels::Decay<T> key_decay(const LinearCall& call, const at::Tensor& decay,
                            int64_t head, bool before_first = true) {
  using By = typename kernels::Decay<T>::By;
  if (call.decay_by == LinearCall::DecayBy::none) return {};
  const bool channel = call.decay_by == LinearCall::DecayBy::channel;
  const int64_t width = channel ? call.d : 1;
  const T* row = decay.data_ptr<T>() + head % call.h * width;
  return {channel ? By::channel : By::head, {row, 1, width, 0, 1}, before_first};
}

/// The same for a pass over a strip of columns that are the channels.
template <class T>
kernels::Decay<T> column_decay(const LinearCall& call, const at::Tensor& decay,
                               Strip strip, bool before_first) {
  using By = typename kernels::Decay<T>::By;
  const auto keys = key_decay<T>(call, decay, strip.head, before_first);
  if (keys.by != By::channel) return keys;
  return {By::column, keys.log_factor.columns(strip.begin, strip.end), before_first};
}

}  // namespace lagwise::ops
