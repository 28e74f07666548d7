#include "lagwise/kernels/gate_gradient.h"

#include <cmath>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/gate_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// x_i . y_i of one row, whatever its steps.
template <class T>
HWY_INLINE double row_product(MatView<const T> x, MatView<const T> y, int64_t i) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const T* const a = x.row(i);
  const T* const b = y.row(i);
  int64_t j = 0;
  double sum = 0;
  if (x.col_step == 1 && y.col_step == 1 && x.cols >= lanes) {
    auto sums = hn::Zero(tag);
    for (; j + lanes <= x.cols; j += lanes)
      sums = hn::MulAdd(hn::LoadU(tag, a + j), hn::LoadU(tag, b + j), sums);
    sum = static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, sums)));
  }
  for (; j < x.cols; ++j)
    sum +=
        static_cast<double>(a[j * x.col_step]) * static_cast<double>(b[j * y.col_step]);
  return sum;
}

template <class T>
void gate_gradient_of(MatView<const T> q, MatView<const T> dq, MatView<const T> k,
                      MatView<const T> dk, MatView<const T> weight,
                      MatView<const T> gate, bool from_nothing, double after,
                      MatView<T> d_gate) noexcept {
  for (int64_t i = q.rows - 1; i >= 0; --i) {
    const double factor = weight.data ? static_cast<double>(weight(i, 0)) : 1.0;
    after += row_product(q, dq, i) - factor * row_product(k, dk, i);
    if (std::isinf(gate(i, 0)) || (from_nothing && i == 0)) after = 0;
    d_gate(i, 0) += static_cast<T>(after);
  }
}

template <class T>
double sum_of_products_of(MatView<const T> a, MatView<const T> b) noexcept {
  double sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) sum += row_product(a, b, i);
  return sum;
}

template <class T>
constexpr Kernels<gate_gradient<T>, sum_of_products<T>> kKernels = {
    {gate_gradient_of<T>}, {sum_of_products_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void gate_gradient(MatView<const T> q, MatView<const T> dq, MatView<const T> k,
                   MatView<const T> dk, MatView<const T> weight, MatView<const T> gate,
                   bool from_nothing, double after, MatView<T> d_gate) noexcept {
  chosen<T, gate_gradient<T>>(q, dq, k, dk, weight, gate, from_nothing, after, d_gate);
}

template <class T>
double sum_of_products(MatView<const T> a, MatView<const T> b) noexcept {
  return chosen<T, sum_of_products<T>>(a, b);
}

LAGWISE_INSTANTIATE(gate_gradient)
LAGWISE_INSTANTIATE(sum_of_products)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
