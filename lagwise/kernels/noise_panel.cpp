#include "lagwise/kernels/noise_panel.h"

#include <algorithm>
#include <bit>
#include <numbers>

// Highway compiles the rest of this file once per instruction set, and CMakeLists.txt
// compiles it without contraction: a fused multiply-add would change the last bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/noise_panel.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

/// Where there are no vectors, single draws are all there is.
template <class T>
void panel_of(const NoiseRow& row, NoiseKind kind, int64_t first, int64_t count,
              int64_t width, T* out) {
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
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const Product a = wide_product(c.w0, 0xD2511F53u);
    const Product b = wide_product(c.w2, 0xCD9E8D57u);
    c = {hn::Xor(hn::Xor(b.high, c.w1), hn::Set(words, k0)), b.low,
         hn::Xor(hn::Xor(a.high, c.w3), hn::Set(words, k1)), a.low};
  }
  return c;
}

// From here on as in core/noise.cpp, operation by operation.

template <size_t size>
HWY_INLINE Real polynomial(const double (&c)[size], Real x) {
  const F64 tag;
  auto sum = hn::Set(tag, c[size - 1]);
  for (size_t i = size - 1; i-- > 0;)
    sum = hn::Add(hn::Mul(sum, x), hn::Set(tag, c[i]));
  return sum;
}

/// A whole number below 2^52 as a double, exactly: as mantissa it stands behind 2^52.
HWY_INLINE Real to_real(hn::Vec<U64> x) {
  const U64 bits;
  const F64 tag;
  const auto shifted = hn::Or(x, hn::Set(bits, std::bit_cast<uint64_t>(0x1p52)));
  return hn::Sub(hn::BitCast(tag, shifted), hn::Set(tag, 0x1p52));
}

/// sqrt(-2 ln u(w))
HWY_INLINE Real radius(hn::Vec<HalfU32> w) {
  static constexpr double kArtanh[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,
                                       1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                       1.0 / 17, 1.0 / 19, 1.0 / 21};
  constexpr uint64_t kSqrtHalf = std::bit_cast<uint64_t>(std::numbers::sqrt2 / 2);
  constexpr uint64_t kBias = 64;  // keeps the exponent e >= -33 above zero
  const U64 bits;
  const F64 tag;
  const auto real = to_real(hn::PromoteTo(bits, w));
  const auto u = hn::Mul(hn::Add(real, hn::Set(tag, 0.5)), hn::Set(tag, 0x1p-32));
  const auto raw = hn::BitCast(bits, u);
  const auto e =
      hn::ShiftRight<52>(hn::Add(raw, hn::Set(bits, (kBias << 52) - kSqrtHalf)));
  const auto m = hn::BitCast(
      tag, hn::Add(hn::Sub(raw, hn::ShiftLeft<52>(e)), hn::Set(bits, kBias << 52)));
  const auto one = hn::Set(tag, 1.0);
  const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const auto exponent = hn::Sub(to_real(e), hn::Set(tag, double{kBias}));
  const auto log = hn::Add(hn::Mul(exponent, hn::Set(tag, std::numbers::ln2)),
                           hn::Mul(hn::Add(s, s), polynomial(kArtanh, hn::Mul(s, s))));
  return hn::Sqrt(hn::Mul(hn::Set(tag, -2.0), log));
}

struct Pair {
  Real cosine, sine;
};

/// r cos and r sin of 2 pi u(w).
HWY_INLINE Pair turned(Real r, hn::Vec<HalfU32> w) {
  static constexpr double kCos[] = {1,
                                    -1.0 / 2,
                                    1.0 / 24,
                                    -1.0 / 720,
                                    1.0 / 40320,
                                    -1.0 / 3628800,
                                    1.0 / 479001600,
                                    -1.0 / 87178291200,
                                    1.0 / 20922789888000};
  static constexpr double kSin[] = {1,
                                    -1.0 / 6,
                                    1.0 / 120,
                                    -1.0 / 5040,
                                    1.0 / 362880,
                                    -1.0 / 39916800,
                                    1.0 / 6227020800,
                                    -1.0 / 1307674368000,
                                    1.0 / 355687428096000};
  const HalfU32 words;
  const U64 bits;
  const F64 tag;
  const hn::Rebind<int32_t, HalfU32> signed_words;
  const auto quarters = hn::ShiftRight<30>(hn::Add(w, hn::Set(words, 1u << 29)));
  const auto rest = hn::BitCast(signed_words, hn::Sub(w, hn::ShiftLeft<30>(quarters)));
  const auto x = hn::Mul(hn::Mul(hn::Add(hn::PromoteTo(tag, rest), hn::Set(tag, 0.5)),
                                 hn::Set(tag, 0x1p-32)),
                         hn::Set(tag, 2 * std::numbers::pi));
  const auto square = hn::Mul(x, x);
  const auto c = polynomial(kCos, square), s = hn::Mul(x, polynomial(kSin, square));
  // Quarters 0 to 3: (c, s), (-s, c), (-c, -s), (s, -c).
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

/// A pair of words makes two rows of normals (Box and Muller, 1958).
template <class T>
HWY_INLINE void store_normals(Word a, Word b, T* row, T* next_row) {
  const HalfU32 half;
  const Pair lower = turned(radius(hn::LowerHalf(half, a)), hn::LowerHalf(half, b));
  const Pair upper = turned(radius(hn::UpperHalf(half, a)), hn::UpperHalf(half, b));
  store(lower.cosine, upper.cosine, row);
  store(lower.sine, upper.sine, next_row);
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
      store_normals(w.w0, w.w1, to, to + width);
      store_normals(w.w2, w.w3, to + 2 * width, to + 3 * width);
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
              int64_t width, T* out) {
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

}  // namespace

void noise_panel_f32(const NoiseRow& row, NoiseKind kind, int64_t first, int64_t count,
                     int64_t width, float* out) {
  panel_of(row, kind, first, count, width, out);
}
void noise_panel_f64(const NoiseRow& row, NoiseKind kind, int64_t first, int64_t count,
                     int64_t width, double* out) {
  panel_of(row, kind, first, count, width, out);
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(noise_panel_f32);
HWY_EXPORT(noise_panel_f64);

template <>
void noise_panel<float>(const NoiseRow& row, NoiseKind kind, int64_t first,
                        int64_t count, int64_t width, float* out) noexcept {
  HWY_DYNAMIC_DISPATCH(noise_panel_f32)(row, kind, first, count, width, out);
}
template <>
void noise_panel<double>(const NoiseRow& row, NoiseKind kind, int64_t first,
                         int64_t count, int64_t width, double* out) noexcept {
  HWY_DYNAMIC_DISPATCH(noise_panel_f64)(row, kind, first, count, width, out);
}

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
