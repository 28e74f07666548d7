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

/// exp(x) of any x: infinite above the largest number, NaN of NaN; below as
/// exp_of_negative.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V exp_of_any(Tag tag, V x) {
  using T = hn::TFromD<Tag>;
  if constexpr (sizeof(T) == 8) {
    const auto most = hn::Set(tag, 709.782712893383973);  // ln of the largest double
    const auto high = hn::Gt(x, hn::Set(tag, 700.0));     // hn::Exp is right up to 706
    const auto in = hn::IfThenElse(hn::Gt(x, most), most, x);
    const auto y =
        hn::Exp(tag, hn::Sub(in, hn::IfThenElseZero(high, hn::Set(tag, 64.0))));
    const auto back = hn::Mul(y, hn::Set(tag, 6.23514908081161688e27));  // e^64
    const auto finite = hn::IfThenElse(high, back, y);
    return hn::IfThenElse(hn::Gt(x, most), hn::Inf(tag), finite);
  } else {
    // Up to here 2^n p(r) has n <= 128 with p < 1 for 128, so its exponent fits.
    const auto most = hn::Set(tag, 88.7228317f);
    const auto y = exp_of_negative(tag, hn::IfThenElse(hn::Gt(x, most), most, x));
    return hn::IfThenElse(hn::Gt(x, most), hn::Inf(tag), y);
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

struct ReluSquared {
  double offset;
  template <class Tag, class V>
  HWY_INLINE V value(Tag tag, V x) const {
    const auto shift = hn::Set(tag, static_cast<hn::TFromD<Tag>>(offset));
    const auto zero = hn::Zero(tag);
    const auto above = hn::IfThenElse(hn::Lt(x, zero), zero, x);
    return hn::MulAdd(above, above, shift);
  }
  template <class Tag, class V>
  HWY_INLINE V slope(Tag tag, V x) const {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(tag)), hn::Add(x, x));
  }
};

struct Exponential {
  template <class Tag, class V>
  HWY_INLINE V value(Tag tag, V x) const {
    return exp_of_any(tag, x);
  }
  template <class Tag, class V>
  HWY_INLINE V slope(Tag tag, V x) const {
    return exp_of_any(tag, x);
  }
};

/// With e = exp(-|x|) <= 1 nothing overflows: sigmoid(x) = 1 / (1 + e) for x > 0,
/// e / (1 + e) otherwise, and 1 - sigmoid(x) is the other of the two.
struct Silu {
  template <class Tag, class V>
  HWY_INLINE V value(Tag tag, V x) const {
    const auto one = hn::Set(tag, hn::TFromD<Tag>{1});
    const auto e = exp_of_negative(tag, hn::Neg(hn::Abs(x)));
    const auto top = hn::IfThenElse(hn::Gt(x, hn::Zero(tag)), one, e);
    return hn::Div(hn::Mul(x, top), hn::Add(one, e));
  }
  template <class Tag, class V>
  HWY_INLINE V slope(Tag tag, V x) const {
    const auto one = hn::Set(tag, hn::TFromD<Tag>{1});
    const auto e = exp_of_negative(tag, hn::Neg(hn::Abs(x)));
    const auto up = hn::Gt(x, hn::Zero(tag));
    const auto below = hn::Div(one, hn::Add(one, e));
    const auto s = hn::Mul(hn::IfThenElse(up, one, e), below);
    const auto rest = hn::Mul(hn::IfThenElse(up, e, one), below);
    return hn::Mul(s, hn::MulAdd(x, rest, one));
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
    case FeatureMap::Kind::relu_squared:
      return fn(ReluSquared{map.offset});
    case FeatureMap::Kind::exp:
      return fn(Exponential{});
    case FeatureMap::Kind::silu:
      return fn(Silu{});
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
