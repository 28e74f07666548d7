// Pointwise feature maps as functors on vectors: `value` is phi(x), `slope` phi'(x).
// To add one: a name in FeatureMap::Kind, a functor here, a case in `with_map`.

#if defined(LAGWISE_KERNELS_FEATURE_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_FEATURE_MAP_INL_H_
#undef LAGWISE_KERNELS_FEATURE_MAP_INL_H_
#else
#define LAGWISE_KERNELS_FEATURE_MAP_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "lagwise/kernels/feature_map.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// exp(x) for x <= 0, unspecified for others. f32: 2^n p(r) with x = n ln 2 + r, |r| <=
/// ln(2) / 2, p of degree 6; max error 1 ulp; below -87 the result stays at exp(-87)
/// = 1.6e-38. Half the work of hn::Exp, which serves all signs: it decides the cost of
/// elu1.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V exp_of_negative(Tag tag, V x) {
  using T = hn::TFromD<Tag>;
  if constexpr (sizeof(T) == 8) {
    return hn::Exp(tag, x);
  } else {
    const hn::RebindToSigned<Tag> int_tag;
    const auto least = hn::Set(tag, -87.0f);
    x = hn::IfThenElse(hn::Lt(x, least), least, x);  // unlike Max, hands on NaN
    // Adding 1.5 * 2^23 rounds to an integer, which then sits in the low bits.
    const auto magic = hn::Set(tag, 12582912.0f);
    const auto shifted = hn::MulAdd(x, hn::Set(tag, 1.44269504f), magic);
    const auto n = hn::Sub(shifted, magic);
    auto r = hn::NegMulAdd(n, hn::Set(tag, 0.693145752f), x);
    r = hn::NegMulAdd(n, hn::Set(tag, 1.42860677e-6f), r);
    auto p = hn::MulAdd(hn::Set(tag, 0.00138145988f), r, hn::Set(tag, 0.00836871658f));
    p = hn::MulAdd(p, r, hn::Set(tag, 0.041668389f));
    p = hn::MulAdd(p, r, hn::Set(tag, 0.166665211f));
    p = hn::MulAdd(p, r, hn::Set(tag, 0.49999994f));
    p = hn::MulAdd(hn::Mul(r, r), p, hn::Add(r, hn::Set(tag, 1.0f)));
    const auto power = hn::ShiftLeft<23>(hn::BitCast(int_tag, shifted));
    return hn::BitCast(tag, hn::Add(hn::BitCast(int_tag, p), power));
  }
}

struct NoMap {
  template <class Tag, class V>
  HWY_INLINE V value(Tag, V x) const {
    return x;
  }
  template <class Tag, class V>
  HWY_INLINE V slope(Tag tag, V) const {
    return hn::Set(tag, hn::TFromD<Tag>{1});
  }
};

struct Elu1 {
  template <class Tag, class V>
  HWY_INLINE V value(Tag tag, V x) const {
    const auto above = hn::Add(x, hn::Set(tag, hn::TFromD<Tag>{1}));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(tag)), above, exp_of_negative(tag, x));
  }
  template <class Tag, class V>
  HWY_INLINE V slope(Tag tag, V x) const {
    const auto one = hn::Set(tag, hn::TFromD<Tag>{1});
    return hn::IfThenElse(hn::Gt(x, hn::Zero(tag)), one, exp_of_negative(tag, x));
  }
};

struct Relu {
  double offset;
  template <class Tag, class V>
  HWY_INLINE V value(Tag tag, V x) const {
    const auto shift = hn::Set(tag, static_cast<hn::TFromD<Tag>>(offset));
    const auto zero = hn::Zero(tag);
    return hn::Add(hn::IfThenElse(hn::Lt(x, zero), zero, x), shift);
  }
  template <class Tag, class V>
  HWY_INLINE V slope(Tag tag, V x) const {
    const auto one = hn::Set(tag, hn::TFromD<Tag>{1});
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(tag)), one);
  }
};

/// Calls fn with the functor of a map: the choice is made once, outside loops.
template <class Fn>
HWY_INLINE void with_map(const FeatureMap& map, const Fn& fn) {
  switch (map.kind) {
    case FeatureMap::Kind::none:
      return fn(NoMap{});
    case FeatureMap::Kind::elu1:
      return fn(Elu1{});
    case FeatureMap::Kind::relu:
      return fn(Relu{map.offset});
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
