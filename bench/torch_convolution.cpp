#include "bench/torch_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>

namespace lagwise::bench {

at::Tensor convolved_by_products(const at::Tensor& x, const at::Tensor& taps) {
  const int64_t n = x.size(1), reach = taps.size(0) - 1;
  const at::Tensor rows = at::constant_pad_nd(x, {0, 0, reach, 0});
  at::Tensor y = x * taps[0];
  for (int64_t j = 1; j <= reach; ++j)
    y = at::addcmul(y, rows.narrow(1, reach - j, n), taps[j]);
  return y;
}

at::Tensor convolved_by_conv1d(const at::Tensor& x, const at::Tensor& taps) {
  const at::Tensor rows = at::constant_pad_nd(x.transpose(1, 2), {taps.size(0) - 1, 0});
  const at::Tensor weight = taps.flip(0).t().unsqueeze(1);  // [W, 1, K]
  return at::conv1d(rows, weight, {}, 1, at::IntArrayRef({0}), 1, x.size(2))
      .transpose(1, 2)
      .contiguous();
}

}  // namespace lagwise::bench
