#include "lagwise/nn/short_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/zeros.h>

#include "lagwise/ops/short_convolution.h"

namespace lagwise::nn {
namespace {

at::Tensor first_taps(int64_t tokens, int64_t width) {
  at::Tensor taps = at::zeros({tokens, width}, at::kFloat);
  taps[0].fill_(1);
  return taps;
}

/// Rows [length, length + count) of each sequence of x [B, N + count, W].
at::Tensor rows_from(const at::Tensor& x, const at::Tensor& lengths, int64_t count) {
  if (!lengths.defined()) return x.narrow(1, x.size(1) - count, count).clone();
  const at::Tensor row = lengths.unsqueeze(1) + at::arange(count, at::kLong);
  return x.gather(1, row.unsqueeze(2).expand({-1, -1, x.size(2)}));
}

}  // namespace

ShortConvolution::ShortConvolution(int64_t tokens, int64_t width)
    : taps_(register_parameter("taps", first_taps(tokens, width))) {}

at::Tensor ShortConvolution::forward(const at::Tensor& x,
                                     const at::Tensor& before) const {
  return ops::short_convolution(x, taps_, before);
}

at::Tensor ShortConvolution::extend(at::Tensor& recent, const at::Tensor& x,
                                    const at::Tensor& lengths) const {
  const at::Tensor before =
      recent.defined() ? recent
                       : at::zeros({x.size(0), reach(), x.size(2)}, x.options());
  recent = lengths.defined() || x.size(1) < reach()
               ? rows_from(at::cat({before, x.detach()}, 1), lengths, reach())
               : rows_from(x.detach(), lengths, reach());
  return forward(x, before);
}

}  // namespace lagwise::nn
