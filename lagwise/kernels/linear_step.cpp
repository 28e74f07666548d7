#include "lagwise/kernels/linear_step.h"

#include <algorithm>
#include <cmath>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/linear_step.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/chunk-inl.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// g of every channel: factors[d * step], with step 0 where all share one.
template <class T>
struct Factors {
  const T* factors;
  int64_t step;
  T operator[](int64_t d) const { return factors[d * step]; }
};

template <class T>
HWY_INLINE Factors<T> factors_of(const Decay<T>& decay, T* to) {
  const T gate = decay.log_gate.data ? decay.log_gate(0, 0) : T{0};
  *to = std::exp(gate);
  if (decay.by == Decay<T>::By::none) return {to, 0};
  for (int64_t d = 0; d < decay.log_factor.cols; ++d)
    to[d] = std::exp(decay.log_factor(0, d) + gate);
  return {to, decay.by == Decay<T>::By::channel ? 1 : 0};
}

/// Advances z and returns 1 / den, which the numerator is multiplied by.
template <class T>
HWY_INLINE T advance_denominator(const Denominator<T>& denominator, const T* q,
                                 const T* k, int64_t width, Factors<T> g) {
  if (denominator.from == Denominator<T>::From::none) return T{1};
  T den = 0;
  for (int64_t d = 0; d < width; ++d) {
    T& z = denominator.z[d];
    z = g[d] * z + k[d];
    den += q[d] * z;
  }
  return inverse_or_zero(with_eps(denominator, den));
}

/// x = b (x - g S^T k) for kVectors vectors of columns: what the delta rule writes.
template <int kVectors, class Tag, class T, class V>
HWY_INLINE void replace_recalled(Tag tag, const T* k, T g, T b, MatView<T> s,
                                 int64_t first, V& x0, V& x1, V& x2, V& x3) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto r0 = hn::Zero(tag), r1 = r0, r2 = r0, r3 = r0;
  for (int64_t d = 0; d < s.rows; ++d) {
    const auto kd = hn::Set(tag, k[d]);
    const T* const row = s.row(d) + first;
    r0 = hn::MulAdd(kd, hn::LoadU(tag, row), r0);
    if constexpr (kVectors > 1) r1 = hn::MulAdd(kd, hn::LoadU(tag, row + lanes), r1);
    if constexpr (kVectors > 2)
      r2 = hn::MulAdd(kd, hn::LoadU(tag, row + 2 * lanes), r2);
    if constexpr (kVectors > 3)
      r3 = hn::MulAdd(kd, hn::LoadU(tag, row + 3 * lanes), r3);
  }
  const auto fade = hn::Set(tag, g), strength = hn::Set(tag, b);
  x0 = hn::Mul(strength, hn::NegMulAdd(fade, r0, x0));
  x1 = hn::Mul(strength, hn::NegMulAdd(fade, r1, x1));
  x2 = hn::Mul(strength, hn::NegMulAdd(fade, r2, x2));
  x3 = hn::Mul(strength, hn::NegMulAdd(fade, r3, x3));
}

/// What the columns of a step have in common.
template <class T>
struct StepRow {
  const T *q, *k;
  Factors<T> g;
  T scale;                  // 1 / den
  const T* write_strength;  // null: no delta rule
};

/// Columns [first, first + kVectors * lanes) of S and of the result, which stays
/// in registers while the rows of S go by.
template <int kVectors, class Tag, class T>
HWY_INLINE void step_columns(Tag tag, const StepRow<T>& x, MatView<const T> v,
                             MatView<T> s, int64_t first, MatView<T> out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto at = [&](int i) { return first + std::min(i, kVectors - 1) * lanes; };
  const T* value = v.row(0);
  auto v0 = hn::LoadU(tag, value + at(0)), v1 = hn::LoadU(tag, value + at(1));
  auto v2 = hn::LoadU(tag, value + at(2)), v3 = hn::LoadU(tag, value + at(3));
  if (x.write_strength)
    replace_recalled<kVectors>(tag, x.k, x.g[0], *x.write_strength, s, first, v0, v1,
                               v2, v3);
  auto o0 = hn::Zero(tag), o1 = o0, o2 = o0, o3 = o0;
  for (int64_t d = 0; d < s.rows; ++d) {
    const auto gd = hn::Set(tag, x.g[d]), kd = hn::Set(tag, x.k[d]),
               qd = hn::Set(tag, x.q[d]);
    const auto pass = [&](int i, auto u, auto& sum) HWY_ATTR {
      T* row = s.row(d) + at(i);
      const auto next = hn::MulAdd(kd, u, hn::Mul(gd, hn::LoadU(tag, row)));
      hn::StoreU(next, tag, row);
      sum = hn::MulAdd(qd, next, sum);
    };
    pass(0, v0, o0);
    if constexpr (kVectors > 1) pass(1, v1, o1);
    if constexpr (kVectors > 2) pass(2, v2, o2);
    if constexpr (kVectors > 3) pass(3, v3, o3);
  }
  const auto f = hn::Set(tag, x.scale);
  T* to = out.row(0);
  hn::StoreU(hn::Mul(o0, f), tag, to + at(0));
  if constexpr (kVectors > 1) hn::StoreU(hn::Mul(o1, f), tag, to + at(1));
  if constexpr (kVectors > 2) hn::StoreU(hn::Mul(o2, f), tag, to + at(2));
  if constexpr (kVectors > 3) hn::StoreU(hn::Mul(o3, f), tag, to + at(3));
}

template <class T>
void step_of(const Rows<T>& q, const Rows<T>& k, const Rows<T>& q_norm,
             const Rows<T>& k_norm, MatView<const T> v, const Decay<T>& decay,
             const Denominator<T>& denominator, MatView<T> s, MatView<T> out,
             T* scratch, const T* write_strength) noexcept {
  const int64_t width = panel_width<T>();
  const auto load = [&](const Rows<T>& rows) HWY_ATTR {
    T* const at = scratch;
    const int64_t padded = round_up(rows.x.cols, width);
    load_rows(rows, 0, 1, Block<T>{at, padded, width});
    scratch += padded;
    return at;
  };
  const T* const kf = load(k);
  const T* const qf = load(q);
  const bool divides = denominator.from != Denominator<T>::From::none;
  const bool same = q_norm.x.data == q.x.data && k_norm.x.data == k.x.data;
  const T* const qn = same || !divides ? qf : load(q_norm);
  const T* const kn = same || !divides ? kf : load(k_norm);
  const Factors<T> g = factors_of(decay, scratch);
  const T scale = advance_denominator(denominator, qn, kn, q_norm.x.cols, g);
  const StepRow<T> x{qf, kf, g, scale, write_strength};

  const hn::ScalableTag<T> tag;
  const hn::CappedTag<T, 1> single;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  int64_t e = 0;
  const bool dense = v.col_step == 1 && s.col_step == 1 && out.col_step == 1;
  if (dense) {
    for (; e + 4 * lanes <= v.cols; e += 4 * lanes)
      step_columns<4>(tag, x, v, s, e, out);
    for (; e + lanes <= v.cols; e += lanes) step_columns<1>(tag, x, v, s, e, out);
  }
  for (; e < v.cols; ++e)
    step_columns<1>(single, x, v.columns(e, e + 1), s.columns(e, e + 1), 0,
                    out.columns(e, e + 1));
}

template <class T>
constexpr Kernels<linear_step<T>> kKernels = {{step_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void linear_step(const Rows<T>& q, const Rows<T>& k, const Rows<T>& q_norm,
                 const Rows<T>& k_norm, MatView<const T> v, const Decay<T>& decay,
                 const Denominator<T>& denominator, MatView<T> s, MatView<T> out,
                 T* scratch, const T* write_strength) noexcept {
  chosen<T, linear_step<T>>(q, k, q_norm, k_norm, v, decay, denominator, s, out,
                            scratch, write_strength);
}

LAGWISE_INSTANTIATE(linear_step)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
