#include "lagwise/kernels/noise_panel.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "lagwise/core/noise_series.h"

// Highway compiles the rest of this file once per instruction set, and CMakeLists.txt
// compiles it without contraction: a fused multiply-add would change the last bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/noise_panel.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

/// Where there are no vectors, single draws are all there is.
template <class T>
void panel_of(const NoiseRow& row, NoiseKind kind, int64_t first, int64_t count,
              int64_t width, T* out) noexcept {
  for (int64_t l = 0; l < width; ++l) {
    const NoiseRow own = row.later(0, l);
    for (int64_t i = 0; i < count; ++i)
      out[i * width + l] = static_cast<T>(
          kind == NoiseKind::normal ? own.normal(first + i) : own.sign(first + i));
  }
}

#else

using U32 = hn::ScalableTag<uint32_t>;
using F32 = hn::ScalableTag<float>;
using HalfU32 = hn::Half<U32>;
using F64 = hn::Rebind<double, HalfU32>;  // as many doubles as half of the words
using U64 = hn::Rebind<uint64_t, HalfU32>;
using Word = hn::Vec<U32>;
using Real = hn::Vec<F64>;

/// The high and low halves of x * factor.
struct Product {
  Word high, low;
};
HWY_INLINE Product wide_product(Word x, uint32_t factor) {
  const U32 words;
  const hn::Repartition<uint64_t, U32> pairs;
  const auto m = hn::Set(words, factor);
  const auto even = hn::MulEven(x, m);
  const auto odd =
      hn::MulEven(hn::BitCast(words, hn::ShiftRight<32>(hn::BitCast(pairs, x))), m);
  return {hn::OddEven(hn::BitCast(words, odd),
                      hn::BitCast(words, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(words, hn::ShiftLeft<32>(odd)),
                      hn::BitCast(words, even))};
}

/// Four random words for each of the lanes.
struct Words {
  Word w0, w1, w2, w3;
};

/// Philox4x32-10 (Salmon et al., 2011), a lane per counter.
HWY_INLINE Words philox(uint64_t key, Words c) {
  const U32 words;
  auto k0 = hn::Set(words, static_cast<uint32_t>(key));
  auto k1 = hn::Set(words, static_cast<uint32_t>(key >> 32));
  const auto step0 = hn::Set(words, 0x9E3779B9u), step1 = hn::Set(words, 0xBB67AE85u);
  for (int round = 0; round < 10; ++round) {
    const Product a = wide_product(c.w0, 0xD2511F53u);
    const Product b = wide_product(c.w2, 0xCD9E8D57u);
    c = {hn::Xor(hn::Xor(b.high, c.w1), k0), b.low, hn::Xor(hn::Xor(a.high, c.w3), k1),
         a.low};
    k0 = hn::Add(k0, step0), k1 = hn::Add(k1, step1);
  }
  return c;
}

// From here on as in core/noise.cpp, operation by operation.

/// Four vectors on the same way: a series is a chain of dependent steps, and four of
/// them side by side keep the processor busy. Named, not an array: see tile-inl.h.
struct Four {
  Real a, b, c, d;
};
HWY_INLINE Four times(const Four& x, const Four& y) {
  return {hn::Mul(x.a, y.a), hn::Mul(x.b, y.b), hn::Mul(x.c, y.c), hn::Mul(x.d, y.d)};
}

/// sum x^i + c[i-1] x^(i-1) + .. + c[0]. The loop is unrolled by hand because g++ -O2
/// does not unroll it.
template <size_t i, size_t size>
HWY_INLINE Four horner(const double (&c)[size], const Four& x, const Four& sum) {
  if constexpr (i == 0) {
    return sum;
  } else {
    const auto k = hn::Set(F64(), c[i - 1]);
    const Four next{hn::Add(hn::Mul(sum.a, x.a), k), hn::Add(hn::Mul(sum.b, x.b), k),
                    hn::Add(hn::Mul(sum.c, x.c), k), hn::Add(hn::Mul(sum.d, x.d), k)};
    return horner<i - 1>(c, x, next);
  }
}
template <size_t size>
HWY_INLINE Four polynomial(const double (&c)[size], const Four& x) {
  const auto top = hn::Set(F64(), c[size - 1]);
  return horner<size - 1>(c, x, {top, top, top, top});
}

/// A whole number below 2^52 as a double, exactly: as mantissa it stands behind 2^52.
HWY_INLINE Real to_real(hn::Vec<U64> x) {
  const U64 bits;
  const F64 tag;
  const auto shifted = hn::Or(x, hn::Set(bits, std::bit_cast<uint64_t>(0x1p52)));
  return hn::Sub(hn::BitCast(tag, shifted), hn::Set(tag, 0x1p52));
}

/// Words as they come: the lower and upper lanes of two vectors.
struct FourWords {
  hn::Vec<HalfU32> a, b, c, d;
};
HWY_INLINE FourWords halves(Word x, Word y) {
  const HalfU32 half;
  return {hn::LowerHalf(half, x), hn::UpperHalf(half, x), hn::LowerHalf(half, y),
          hn::UpperHalf(half, y)};
}

/// u(w) = 2^e m with sqrt(1/2) <= m < sqrt(2).
struct Split {
  Real e, m;
};
HWY_INLINE Split split_uniform(hn::Vec<HalfU32> w) {
  constexpr uint64_t kSqrtHalf = std::bit_cast<uint64_t>(std::numbers::sqrt2 / 2);
  constexpr uint64_t kBias = 64;  // keeps the exponent e >= -33 above zero
  const U64 bits;
  const F64 tag;
  const auto real = to_real(hn::PromoteTo(bits, w));
  const auto u = hn::Mul(hn::Add(real, hn::Set(tag, 0.5)), hn::Set(tag, 0x1p-32));
  const auto raw = hn::BitCast(bits, u);
  const auto e =
      hn::ShiftRight<52>(hn::Add(raw, hn::Set(bits, (kBias << 52) - kSqrtHalf)));
  const auto m =
      hn::Add(hn::Sub(raw, hn::ShiftLeft<52>(e)), hn::Set(bits, kBias << 52));
  return {hn::Sub(to_real(e), hn::Set(tag, double{kBias})), hn::BitCast(tag, m)};
}

/// s with ln m = 2 artanh(s)
HWY_INLINE Real artanh_argument(Real m) {
  const auto one = hn::Set(F64(), 1.0);
  return hn::Div(hn::Sub(m, one), hn::Add(m, one));
}
HWY_INLINE Real radius_of(Real e, Real s, Real series) {
  const F64 tag;
  const auto log = hn::Add(hn::Mul(e, hn::Set(tag, std::numbers::ln2)),
                           hn::Mul(hn::Add(s, s), series));
  return hn::Sqrt(hn::Mul(hn::Set(tag, -2.0), log));
}

/// sqrt(-2 ln u(w))
HWY_INLINE Four radius(const FourWords& w) {
  const Split a = split_uniform(w.a), b = split_uniform(w.b), c = split_uniform(w.c),
              d = split_uniform(w.d);
  const Four s{artanh_argument(a.m), artanh_argument(b.m), artanh_argument(c.m),
               artanh_argument(d.m)};
  const Four series = polynomial(noise_series::kArtanh, times(s, s));
  return {radius_of(a.e, s.a, series.a), radius_of(b.e, s.b, series.b),
          radius_of(c.e, s.c, series.c), radius_of(d.e, s.d, series.d)};
}

/// The nearest quarter turn; it wraps, as four quarters are none.
HWY_INLINE hn::Vec<HalfU32> quarters_of(hn::Vec<HalfU32> w) {
  return hn::ShiftRight<30>(hn::Add(w, hn::Set(HalfU32(), 1u << 29)));
}

/// What is left of an angle after whole quarter turns, in radians.
HWY_INLINE Real rest_of(hn::Vec<HalfU32> w, hn::Vec<HalfU32> quarters) {
  const F64 tag;
  const hn::Rebind<int32_t, HalfU32> words;
  const auto rest = hn::BitCast(words, hn::Sub(w, hn::ShiftLeft<30>(quarters)));
  const auto turns = hn::Mul(hn::Add(hn::PromoteTo(tag, rest), hn::Set(tag, 0.5)),
                             hn::Set(tag, 0x1p-32));
  return hn::Mul(turns, hn::Set(tag, 2 * std::numbers::pi));
}

struct Pair {
  Real cosine, sine;
};

/// r times (c, s), (-s, c), (-c, -s) or (s, -c) for quarters 0 to 3.
HWY_INLINE Pair turned(Real r, Real c, Real s, hn::Vec<HalfU32> quarters) {
  const U64 bits;
  const F64 tag;
  const auto q = hn::PromoteTo(bits, quarters);
  const auto one = hn::Set(bits, 1), two = hn::Set(bits, 2);
  const auto odd =
      hn::MaskFromVec(hn::BitCast(tag, hn::VecFromMask(hn::Eq(hn::And(q, one), one))));
  const auto cosine_sign = hn::ShiftLeft<62>(hn::And(hn::Add(q, one), two));
  const auto sine_sign = hn::ShiftLeft<62>(hn::And(q, two));
  const auto cosine = hn::Xor(hn::IfThenElse(odd, s, c), hn::BitCast(tag, cosine_sign));
  const auto sine = hn::Xor(hn::IfThenElse(odd, c, s), hn::BitCast(tag, sine_sign));
  return {hn::Mul(r, cosine), hn::Mul(r, sine)};
}

/// Doubles of the lower and upper lanes, stored as T.
HWY_INLINE void store(Real lower, Real upper, double* to) {
  const F64 tag;
  hn::StoreU(lower, tag, to);
  hn::StoreU(upper, tag, to + hn::Lanes(tag));
}
HWY_INLINE void store(Real lower, Real upper, float* to) {
  const hn::Half<F32> half;
  hn::StoreU(hn::DemoteTo(half, lower), half, to);
  hn::StoreU(hn::DemoteTo(half, upper), half, to + hn::Lanes(half));
}

/// Four words make four rows of normals (Box and Muller, 1958): words 0 and 2 the
/// radius, 1 and 3 the angle.
template <class T>
HWY_INLINE void store_normals(const Words& words, int64_t step, T* rows) {
  const Four r = radius(halves(words.w0, words.w2));
  const FourWords w = halves(words.w1, words.w3);
  const FourWords q{quarters_of(w.a), quarters_of(w.b), quarters_of(w.c),
                    quarters_of(w.d)};
  const Four x{rest_of(w.a, q.a), rest_of(w.b, q.b), rest_of(w.c, q.c),
               rest_of(w.d, q.d)};
  const Four square = times(x, x), c = polynomial(noise_series::kCos, square);
  const Four s = times(x, polynomial(noise_series::kSin, square));
  const Pair a = turned(r.a, c.a, s.a, q.a), b = turned(r.b, c.b, s.b, q.b);
  store(a.cosine, b.cosine, rows);
  store(a.sine, b.sine, rows + step);
  const Pair e = turned(r.c, c.c, s.c, q.c), f = turned(r.d, c.d, s.d, q.d);
  store(e.cosine, f.cosine, rows + 2 * step);
  store(e.sine, f.sine, rows + 3 * step);
}

/// +1 where the top bit is set, else -1.
HWY_INLINE void store_signs(Word w, float* to) {
  const U32 words;
  const auto sign = hn::AndNot(w, hn::Set(words, 0x80000000u));
  const auto one = hn::Set(words, std::bit_cast<uint32_t>(1.0f));
  hn::StoreU(hn::BitCast(F32(), hn::Or(one, sign)), F32(), to);
}
HWY_INLINE void store_signs(Word w, double* to) {
  const HalfU32 half;
  const hn::Rebind<float, HalfU32> floats;
  const F64 tag;
  const U32 words;
  const auto sign = hn::AndNot(w, hn::Set(words, 0x80000000u));
  const auto x = hn::Or(hn::Set(words, std::bit_cast<uint32_t>(1.0f)), sign);
  store(hn::PromoteTo(tag, hn::BitCast(floats, hn::LowerHalf(half, x))),
        hn::PromoteTo(tag, hn::BitCast(floats, hn::UpperHalf(half, x))), to);
}

/// The rows of positions 4 index .. 4 index + 3, of all lanes.
template <class T>
HWY_NOINLINE void four_rows(const NoiseRow::Counter& at, NoiseKind kind, int64_t index,
                            int64_t width, T* out) {
  constexpr uint64_t kLow46 = (uint64_t{1} << 46) - 1;
  const U32 words;
  const uint64_t number = kind == NoiseKind::normal ? 1 : 2;
  const uint64_t low =
      at.layer | number << 46 | (static_cast<uint64_t>(index) & kLow46);
  const auto step = static_cast<int64_t>(hn::Lanes(words));
  for (int64_t l = 0; l < width; l += step) {
    const auto lane = static_cast<uint32_t>(at.rest) + static_cast<uint32_t>(l);
    const Words w =
        philox(at.key,
               {hn::Set(words, static_cast<uint32_t>(low)),
                hn::Set(words, static_cast<uint32_t>(low >> 32)), hn::Iota(words, lane),
                hn::Set(words, static_cast<uint32_t>(at.rest >> 32))});
    T* const to = out + l;
    if (kind == NoiseKind::normal) {
      store_normals(w, width, to);
    } else {
      store_signs(w.w0, to);
      store_signs(w.w1, to + width);
      store_signs(w.w2, to + 2 * width);
      store_signs(w.w3, to + 3 * width);
    }
  }
}

template <class T>
void panel_of(const NoiseRow& row, NoiseKind kind, int64_t first, int64_t count,
              int64_t width, T* out) noexcept {
  constexpr int64_t kWidest = 64;  // of a vector of float, on any target
  const auto step = static_cast<int64_t>(hn::Lanes(U32()));
  const NoiseRow::Counter at = row.counter();
  for (int64_t done = 0; done < count;) {
    const int64_t lane = (first + done) & 3, index = (first + done) >> 2;
    const int64_t rows = std::min(4 - lane, count - done);
    if (rows == 4) {
      four_rows(at, kind, index, width, out + done * width);
    } else {  // the rows asked for begin or end inside a block of four
      for (int64_t l = 0; l < width; l += step) {
        T block[4 * kWidest];
        four_rows({at.key, at.layer, at.rest + static_cast<uint64_t>(l)}, kind, index,
                  step, block);
        for (int64_t i = 0; i < rows; ++i)
          std::copy_n(block + (lane + i) * step, step, out + (done + i) * width + l);
      }
    }
    done += rows;
  }
}

#endif

template <class T>
constexpr Kernels<noise_panel<T>> kKernels = {{panel_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void noise_panel(const NoiseRow& row, NoiseKind kind, int64_t first, int64_t count,
                 int64_t width, T* out) noexcept {
  chosen<T, noise_panel<T>>(row, kind, first, count, width, out);
}

LAGWISE_INSTANTIATE(noise_panel)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
