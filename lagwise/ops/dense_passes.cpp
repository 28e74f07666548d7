#include "lagwise/ops/dense_passes.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <type_traits>

#include "lagwise/kernels/add_rows.h"
#include "lagwise/kernels/bf16_numbers.h"
#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/parallel/sums_in_order.h"

namespace lagwise::ops {

at::Tensor dense_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}

template <class T>
void dense_some_rows(MatView<const T> x, const at::Tensor& weight,
                     const at::Tensor& bias, MatView<const SumOf<T>> start,
                     MatView<SumOf<T>> y) {
  using Sum = SumOf<T>;
  multiply(x, matrix_view<const T>(weight).transposed(), false, y);
  // Afterwards, while y is in the cache: before, a product would have to read it again.
  kernels::add_rows<Sum>(start, bias.defined() ? bias.data_ptr<Sum>() : nullptr, y);
}
template void dense_some_rows<float>(MatView<const float>, const at::Tensor&,
                                     const at::Tensor&, MatView<const float>,
                                     MatView<float>);
template void dense_some_rows<double>(MatView<const double>, const at::Tensor&,
                                      const at::Tensor&, MatView<const double>,
                                      MatView<double>);
template void dense_some_rows<c10::BFloat16>(MatView<const c10::BFloat16>,
                                             const at::Tensor&, const at::Tensor&,
                                             MatView<const float>, MatView<float>);

template <class T>
void sum_over_rows(MatView<const T> d, const at::Tensor& ones, bool add, SumOf<T>* to) {
  if constexpr (std::is_same_v<T, c10::BFloat16>)
    kernels::sum_bf16_rows(
        {reinterpret_cast<const uint16_t*>(d.data), d.rows, d.cols, d.row_step, 1}, add,
        to);
  else
    multiply(matrix_view<const T>(ones).columns(0, d.rows), d, add,
             MatView<T>{to, 1, d.cols, d.cols, 1});
}
template void sum_over_rows<float>(MatView<const float>, const at::Tensor&, bool,
                                   float*);
template void sum_over_rows<double>(MatView<const double>, const at::Tensor&, bool,
                                    double*);
template void sum_over_rows<c10::BFloat16>(MatView<const c10::BFloat16>,
                                           const at::Tensor&, bool, float*);

int64_t ranges_of_rows(int64_t rows, int64_t weights) {
  constexpr int64_t kFewWeights = 1 << 16, kRows = 512;
  return std::clamp<int64_t>(rows / kRows, 1, weights <= kFewWeights ? 8 : 4);
}

RangeSums::RangeSums(const at::Tensor& to, int64_t ranges, bool cleared) : to_(to) {
  if (to.defined() && ranges > 1)
    more_ = at::empty({ranges - 1, to.numel()}, to.options());
  if (!cleared) return;
  for (const at::Tensor* part : {&to_, &more_})
    if (part->defined()) part->zero_();
}

void RangeSums::add_up() const {
  if (more_.defined()) add_in_order(more_, to_);
}

}  // namespace lagwise::ops
