// Waves of a tile of positions, feature by feature with the positions in the lanes:
// what the forward and the backward pass of SineSPE share.

#if defined(LAGWISE_KERNELS_SINE_WAVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_SINE_WAVE_INL_H_
#undef LAGWISE_KERNELS_SINE_WAVE_INL_H_
#else
#define LAGWISE_KERNELS_SINE_WAVE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "lagwise/kernels/simd/rows-inl.h"
#include "lagwise/kernels/simd/scratch.h"
#include "lagwise/kernels/simd/tile-inl.h"
#include "lagwise/kernels/sine_spe.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Positions of a tile: a whole number of panels on every target.
constexpr int64_t kTile = 32;
/// Features d that are mixed together, so that their rows stay in the L1 cache.
constexpr int64_t kGroup = 8;

/// The scratch of one head. J = kTile, W a panel's width, R the width padded to panels.
template <class T>
struct SineWork {
  int64_t panels, pairs;  // pairs: D K, padded to whole vectors
  T* steps;               // [D K, 2, J]   cos and sin of 2 pi f j: the table of steps
  T* base;                // [2, pairs]    cos and sin at the first position of the tile
  T* wave;                // [F, J]
  T* mixed;               // [kGroup P, J] what is multiplied by Z, or its gradient
  T* x;                   // [D, J]
  T* dx;                  // [D, J]
  T* sum;                 // [batch, R, J] results, or their gradients
  T* code;                // [16, 16, W]
  T* packed;              // [R / W][F][W]
  T* offset;              // [J]           position minus the tile's first
  double* frequency;      // [pairs], padded with zeros
  double* phase;          // [pairs]
  int64_t reals_used, doubles_used;

  /// Without memory (null), only counts what would be used.
  SineWork(const SineHead& head, const SineMix<T>& mix, int64_t batch, T* reals,
           double* doubles)
      : panels(round_up(mix.width, panel_width<T>()) / panel_width<T>()),
        pairs(round_up(head.d * head.sines, panel_width<T>())) {
    Scratch<T> real(reals);
    Scratch<double> wide(doubles);
    const int64_t width = panel_width<T>();
    steps = real.take(2 * pairs * kTile);
    base = real.take(2 * pairs);
    wave = real.take(head.features() * kTile);
    mixed = real.take(std::min(head.d, kGroup) * head.waves() * kTile);
    x = real.take(head.d * kTile);
    dx = real.take(head.d * kTile);
    sum = real.take(std::max<int64_t>(batch, 1) * panels * width * kTile);
    code = real.take(int64_t{16} * 16 * width);
    packed = real.take(mix.z != nullptr ? panels * width * head.features() : 0);
    offset = real.take(kTile);
    frequency = wide.take(pairs);
    phase = wide.take(pairs);
    reals_used = real.used();
    doubles_used = wide.used();
  }
};

template <class T, size_t size, class Tag, class V>
HWY_INLINE V series(Tag tag, const double (&c)[size], V x) {
  auto sum = hn::Set(tag, static_cast<T>(c[size - 1]));
  for (size_t i = size - 1; i-- > 0;)
    sum = hn::MulAdd(sum, x, hn::Set(tag, static_cast<T>(c[i])));
  return sum;
}

/// cos and sin of 2 pi (r + quarter / 4) with |r| <= 1/8: Taylor's series of the rest,
/// exchanged and signed by the quarter.
template <class T, class Tag, class V>
HWY_INLINE void cos_sin(Tag tag, V r, V quarter, V& cosine, V& sine) {
  // (-1)^i (2 pi)^(2i) / (2i)! and (-1)^i (2 pi)^(2i+1) / (2i+1)!
  constexpr double kCos[] = {1.0,
                             -19.739208802178716,
                             64.93939402266829,
                             -85.45681720669373,
                             60.24464137187666,
                             -26.426256783374398,
                             7.903536371318467,
                             -1.7143907110886711,
                             0.28200596845579096,
                             -0.03638284114254564};
  constexpr double kSin[] = {6.283185307179586,   -41.341702240399755,
                             81.60524927607504,   -76.70585975306136,
                             42.058693944897634,  -15.094642576822984,
                             3.8199525848482803,  -0.7181223017785001,
                             0.10422916220813975, -0.012031585942120627};
  const auto square = hn::Mul(r, r);
  V c, s;
  if constexpr (sizeof(T) == 4) {  // the terms left out are below 2^-25
    constexpr double kFewCos[] = {kCos[0], kCos[1], kCos[2], kCos[3], kCos[4]};
    constexpr double kFewSin[] = {kSin[0], kSin[1], kSin[2], kSin[3], kSin[4]};
    c = series<T>(tag, kFewCos, square);
    s = hn::Mul(r, series<T>(tag, kFewSin, square));
  } else {
    c = series<T>(tag, kCos, square);
    s = hn::Mul(r, series<T>(tag, kSin, square));
  }
  const auto number = [&](double value)
                          HWY_ATTR { return hn::Set(tag, static_cast<T>(value)); };
  // quarter mod 4, as 0, 1, 2 or 3
  const auto mod =
      hn::Sub(quarter, hn::Mul(number(4), hn::Floor(hn::Mul(quarter, number(0.25)))));
  const auto one = hn::Eq(mod, number(1)), two = hn::Eq(mod, number(2));
  const auto three = hn::Eq(mod, number(3));
  const auto odd = hn::Or(one, three);
  const auto c_turned = hn::IfThenElse(odd, s, c), s_turned = hn::IfThenElse(odd, c, s);
  cosine = hn::IfThenElse(hn::Or(one, two), hn::Neg(c_turned), c_turned);
  sine = hn::IfThenElse(hn::Or(two, three), hn::Neg(s_turned), s_turned);
}

/// cos and sin of every pair (d, k) at one position: to[pair * step] and
/// to[sine_at + pair * step]. Angles are reduced to quarter turns and a rest in double.
///
/// The top 24 bits of f times a whole position below 2^29 are exact, so whole turns
/// come off that product without any error; what is left of f gives less than a few
/// turns at such a position.
template <class T>
HWY_NOINLINE void waves_at(const SineWork<T>& work, bool with_phase, double position,
                           T* to, int64_t step, int64_t sine_at) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<T, decltype(wide)> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
  const hn::Repartition<uint64_t, decltype(wide)> bits;
  const auto top = hn::BitCast(wide, hn::Set(bits, ~uint64_t{0} << 29));
  const auto n = hn::Set(wide, position);
  HWY_ALIGN T buffer[size_t{2} * HWY_MAX_BYTES / sizeof(double)];
  for (int64_t i = 0; i < work.pairs; i += lanes) {
    const auto f = hn::LoadU(wide, work.frequency + i);
    const auto high = hn::And(f, top), turns = hn::Mul(high, n);
    auto angle = hn::MulAdd(hn::Sub(f, high), n, hn::Sub(turns, hn::Round(turns)));
    if (with_phase) angle = hn::Add(angle, hn::LoadU(wide, work.phase + i));
    const auto quarters = hn::Round(hn::Mul(angle, hn::Set(wide, 4.0)));
    const auto rest = hn::NegMulAdd(quarters, hn::Set(wide, 0.25), angle);
    auto c = hn::Zero(tag), s = c;
    if constexpr (sizeof(T) == 8)
      cos_sin<T>(tag, rest, quarters, c, s);
    else
      cos_sin<T>(tag, hn::DemoteTo(tag, rest), hn::DemoteTo(tag, quarters), c, s);
    if (step == 1) {
      hn::StoreU(c, tag, to + i);
      hn::StoreU(s, tag, to + sine_at + i);
      continue;
    }
    hn::StoreU(c, tag, buffer);
    hn::StoreU(s, tag, buffer + lanes);
    for (int64_t j = 0; j < lanes; ++j) {
      to[(i + j) * step] = buffer[j];
      to[sine_at + (i + j) * step] = buffer[lanes + j];
    }
  }
}

/// Whether positions go up by 1: then the steps of one table serve every tile.
inline bool counts_up(const SineSide& side) {
  for (int64_t i = 1; i < side.rows; ++i)
    if (side.positions[i] != side.positions[i - 1] + 1) return false;
  return true;
}

/// The table of steps of the tile at row `first`, and the waves at its beginning: the
/// wave at step j is base turned by steps_j. Where positions do not count up by 1
/// the table holds the whole angle and base is no turn at all.
template <class T>
HWY_NOINLINE void place_tile(const SineSide& side, bool counting, int64_t first,
                             int64_t rows, int64_t padded, const SineWork<T>& work,
                             SineScratch<T>& scratch) {
  const double* positions = side.positions + first;
  for (int64_t j = 0; j < rows; ++j)
    work.offset[j] = static_cast<T>(positions[j] - positions[0]);
  std::fill(work.offset + rows, work.offset + kTile, T{0});
  const bool shifted = side.phase != nullptr;
  if (counting) {
    for (; scratch.steps < rows; ++scratch.steps)
      waves_at(work, false, static_cast<double>(scratch.steps),
               work.steps + scratch.steps, 2 * kTile, kTile);
    waves_at(work, shifted, positions[0], work.base, 1, work.pairs);
  } else {
    for (int64_t j = 0; j < rows; ++j)
      waves_at(work, shifted, positions[j], work.steps + j, 2 * kTile, kTile);
    std::fill_n(work.base, work.pairs, T{1});
    std::fill_n(work.base + work.pairs, work.pairs, T{0});
    scratch.steps = 0;
  }
  // The lanes beyond the rows must hold numbers: they are multiplied by zeros.
  const int64_t ready = std::max(rows, scratch.steps);
  for (int64_t i = 0; i < 2 * work.pairs && ready < padded; ++i)
    std::fill(work.steps + i * kTile + ready, work.steps + i * kTile + padded, T{0});
}

/// Frequencies and phases of a side, padded: before the first tile.
template <class T>
HWY_INLINE void load_angles(const SineHead& head, const SineSide& side,
                            const SineWork<T>& work) {
  const int64_t pairs = head.d * head.sines;
  std::fill(std::copy_n(head.frequency, pairs, work.frequency),
            work.frequency + work.pairs, 0.0);
  if (side.phase == nullptr) return;
  std::fill(std::copy_n(side.phase, pairs, work.phase), work.phase + work.pairs, 0.0);
}

/// to[c * to_step + r] = from[r * from_step + c], rows x cols.
template <class T>
HWY_NOINLINE void turn_block(const T* from, int64_t from_step, int64_t rows,
                             int64_t cols, T* to, int64_t to_step) {
  int64_t fours = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    fours = cols / 4 * 4;
    for (int64_t c = 0; c < fours; c += 4) {
      int64_t r = 0;
      for (; r + 4 <= rows; r += 4)
        transpose_block(hn::CappedTag<T, 4>(), from + r * from_step + c, from_step,
                        to + c * to_step + r, to_step);
      for (; r < rows; ++r)
        for (int64_t i = c; i < c + 4; ++i)
          to[i * to_step + r] = from[r * from_step + i];
    }
  }
#endif
  for (int64_t c = fours; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * to_step + r] = from[r * from_step + c];
}

/// Rows [first, first + rows) of batch row b, turned to [cols, J]; zeros after them, so
/// that the padding of a tile adds nothing.
template <class T>
HWY_NOINLINE void load_turned(SineRows<const T> from, int64_t b, int64_t first,
                              int64_t rows, int64_t cols, T* to) {
  const T* source = from.at(b, first);
  if (from.col_step == 1) {
    turn_block(source, from.row_step, rows, cols, to, kTile);
  } else {
    for (int64_t c = 0; c < cols; ++c)
      for (int64_t j = 0; j < rows; ++j)
        to[c * kTile + j] = source[j * from.row_step + c * from.col_step];
  }
  for (int64_t c = 0; c < cols && rows < kTile; ++c)
    std::fill(to + c * kTile + rows, to + (c + 1) * kTile, T{0});
}

/// The way back: columns [cols, J] to rows of batch row b.
template <class T>
HWY_NOINLINE void store_turned(const T* from, int64_t b, int64_t first, int64_t rows,
                               int64_t cols, SineRows<T> to) {
  T* const target = to.at(b, first);
  if (to.col_step == 1) return turn_block(from, kTile, cols, rows, target, to.row_step);
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t c = 0; c < cols; ++c)
      target[j * to.row_step + c * to.col_step] = from[c * kTile + j];
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
