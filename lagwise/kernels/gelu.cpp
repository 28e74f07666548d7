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

void gelu_of(const float* x, int64_t count, float* y) noexcept {
  each_vector<float>(count, [&](auto tag, int64_t i) HWY_ATTR {
    const auto at = hn::LoadU(tag, x + i);
    hn::StoreU(hn::Mul(at, normal_at(tag, at).below), tag, y + i);
  });
}
void gelu_of(const double* x, int64_t count, double* y) noexcept {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * normal_at(x[i]).below;
}

void gradient_of(const float* x, const float* dy, int64_t count, float* y,
                 float* dx) noexcept {
  each_vector<float>(count, [&](auto tag, int64_t i) HWY_ATTR {
    const auto at = hn::LoadU(tag, x + i), up = hn::LoadU(tag, dy + i);
    const auto normal = normal_at(tag, at);
    hn::StoreU(hn::Mul(at, normal.below), tag, y + i);
    const auto slope = hn::MulAdd(at, normal.density, normal.below);
    hn::StoreU(hn::Mul(up, slope), tag, dx + i);
  });
}
void gradient_of(const double* x, const double* dy, int64_t count, double* y,
                 double* dx) noexcept {
  for (int64_t i = 0; i < count; ++i) {
    const Normal<double> normal = normal_at(x[i]);
    y[i] = x[i] * normal.below;
    dx[i] = dy[i] * (normal.below + x[i] * normal.density);
  }
}

template <class T>
constexpr Kernels<gelu<T>, gelu_gradient<T>> kKernels = {{gelu_of}, {gradient_of}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void gelu(const T* x, int64_t count, T* y) noexcept {
  chosen<T, gelu<T>>(x, count, y);
}
template <class T>
void gelu_gradient(const T* x, const T* dy, int64_t count, T* y, T* dx) noexcept {
  chosen<T, gelu_gradient<T>>(x, dy, count, y, dx);
}

LAGWISE_INSTANTIATE(gelu)
LAGWISE_INSTANTIATE(gelu_gradient)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
