#include "lagwise/nn/short_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/zeros.h>

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

/// The rows of x after those before them, [B, K - 1 + N, W].
at::Tensor ShortConvolution::after(const at::Tensor& recent,
                                   const at::Tensor& x) const {
  if (recent.defined()) return at::cat({recent, x}, 1);
  const int64_t before = taps_.size(0) - 1;
  return at::cat({at::zeros({x.size(0), before, x.size(2)}, x.options()), x}, 1);
}

at::Tensor ShortConvolution::convolve(const at::Tensor& rows) const {
  const int64_t before = taps_.size(0) - 1, n = rows.size(1) - before;
  at::Tensor y = rows.narrow(1, before, n) * taps_[0];
  for (int64_t j = 1; j <= before; ++j)
    y = at::addcmul(y, rows.narrow(1, before - j, n), taps_[j]);
  return y;
}

at::Tensor ShortConvolution::forward(const at::Tensor& x,
                                     const at::Tensor& before) const {
  return convolve(after(before, x));
}

at::Tensor ShortConvolution::extend(at::Tensor& recent, const at::Tensor& x,
                                    const at::Tensor& lengths) const {
  const at::Tensor rows = after(recent, x);
  recent = rows_from(rows.detach(), lengths, taps_.size(0) - 1);
  return convolve(rows);
}

}  // namespace lagwise::nn
