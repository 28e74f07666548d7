#include "lagwise/kernels/gelu.h"

#include <cmath>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/gelu.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/feature_map-inl.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Normal {
  V below;    // Phi(x)
  V density;  // phi(x)
};

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE Normal<V> normal_at(Tag tag, V x) {
  const auto number = [&](float value) HWY_ATTR { return hn::Set(tag, value); };
  const auto bell =
      exp_of_negative(tag, hn::Mul(hn::Mul(x, x), number(-0.5f)));  // e^(-x^2 / 2)
  const auto one = number(1.0f);
  // 0.3275911 / sqrt 2, and half of the published coefficients
  const auto t = hn::Div(one, hn::MulAdd(hn::Abs(x), number(0.231641888f), one));
  auto p = hn::MulAdd(t, number(0.5307027145f), number(-0.7265760135f));
  p = hn::MulAdd(p, t, number(0.7107068705f));
  p = hn::MulAdd(p, t, number(-0.142248368f));
  p = hn::MulAdd(p, t, number(0.127414796f));
  const auto tail = hn::Mul(hn::Mul(p, t), bell);
  const auto below = hn::IfThenElse(hn::Lt(x, hn::Zero(tag)), tail, hn::Sub(one, tail));
  return {below, hn::Mul(bell, number(0.3989422804f))};
}

HWY_INLINE Normal<double> normal_at(double x) {
  return {0.5 * std::erfc(-x * 0.70710678118654752440),
          0.39894228040143267794 * std::exp(-0.5 * x * x)};
}

/// x_j + b_j; no bias is 0.
template <class Tag, class T>
HWY_INLINE hn::Vec<Tag> biased(Tag tag, const T* x, const T* bias, int64_t j) {
  const auto at = hn::LoadU(tag, x + j);
  return bias ? hn::Add(at, hn::LoadU(tag, bias + j)) : at;
}

void gelu_row(const float* x, const float* bias, int64_t cols, float* y) noexcept {
  each_vector<float>(cols, [&](auto tag, int64_t j) HWY_ATTR {
    const auto at = biased(tag, x, bias, j);
    hn::StoreU(hn::Mul(at, normal_at(tag, at).below), tag, y + j);
  });
}
void gelu_row(const double* x, const double* bias, int64_t cols, double* y) noexcept {
  for (int64_t j = 0; j < cols; ++j) {
    const double at = x[j] + (bias ? bias[j] : 0);
    y[j] = at * normal_at(at).below;
  }
}

void gradient_row(const float* x, const float* bias, const float* dy, int64_t cols,
                  float* y, float* dx) noexcept {
  each_vector<float>(cols, [&](auto tag, int64_t j) HWY_ATTR {
    const auto at = biased(tag, x, bias, j);
    const auto up = hn::LoadU(tag, dy + j);
    const auto normal = normal_at(tag, at);
    hn::StoreU(hn::Mul(at, normal.below), tag, y + j);
    const auto slope = hn::MulAdd(at, normal.density, normal.below);
    hn::StoreU(hn::Mul(up, slope), tag, dx + j);
  });
}
void gradient_row(const double* x, const double* bias, const double* dy, int64_t cols,
                  double* y, double* dx) noexcept {
  for (int64_t j = 0; j < cols; ++j) {
    const double at = x[j] + (bias ? bias[j] : 0);
    const Normal<double> normal = normal_at(at);
    y[j] = at * normal.below;
    dx[j] = dy[j] * (normal.below + at * normal.density);
  }
}

template <class T>
void gelu_of(MatView<const T> x, const T* bias, MatView<T> y) noexcept {
  for (int64_t i = 0; i < x.rows; ++i) gelu_row(x.row(i), bias, x.cols, y.row(i));
}
template <class T>
void gradient_of(MatView<const T> x, const T* bias, MatView<const T> dy, MatView<T> y,
                 MatView<T> dx) noexcept {
  for (int64_t i = 0; i < x.rows; ++i)
    gradient_row(x.row(i), bias, dy.row(i), x.cols, y.row(i), dx.row(i));
}

template <class T>
constexpr Kernels<gelu<T>, gelu_gradient<T>> kKernels = {{gelu_of<T>},
                                                         {gradient_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void gelu(MatView<const T> x, const T* bias, MatView<T> y) noexcept {
  chosen<T, gelu<T>>(x, bias, y);
}
template <class T>
void gelu_gradient(MatView<const T> x, const T* bias, MatView<const T> dy, MatView<T> y,
                   MatView<T> dx) noexcept {
  chosen<T, gelu_gradient<T>>(x, bias, dy, y, dx);
}

LAGWISE_INSTANTIATE(gelu)
LAGWISE_INSTANTIATE(gelu_gradient)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
