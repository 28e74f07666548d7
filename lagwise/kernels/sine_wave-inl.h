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
#include "lagwise/kernels/rows-inl.h"
#include "lagwise/kernels/sine_spe.h"
#include "lagwise/kernels/tile-inl.h"

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
  int64_t panels;
  T* steps;   // [D K, 2, J]   cos and sin of 2 pi f j: the table of steps
  T* base;    // [2, D K]      cos and sin at the first position of the tile
  T* wave;    // [F, J]
  T* mixed;   // [kGroup P, J] what is multiplied by Z, or its gradient
  T* x;       // [D, J]
  T* dx;      // [D, J]
  T* sum;     // [batch, R, J] results, or their gradients
  T* code;    // [16, 16, W]
  T* packed;  // [R / W][F][W]
  T* offset;  // [J]           position minus the tile's first
  T* end;
  double* rest;     // [D K] the angle less a whole number of quarter turns, in turns
  double* quarter;  // [D K] how many
  double* doubles_end;

  SineWork(const SineHead& head, const SineMix<T>& mix, int64_t batch, T* reals,
           double* doubles)
      : panels(round_up(mix.width, panel_width<T>()) / panel_width<T>()) {
    const auto take = [](auto*& from, int64_t n) {
      auto* const at = from;
      from += round_up(n, 16);
      return at;
    };
    const int64_t width = panel_width<T>(), pairs = head.d * head.sines;
    const int64_t lanes_pad = 64;  // loops over pairs run in whole vectors
    steps = take(reals, 2 * pairs * kTile);
    base = take(reals, 2 * (pairs + lanes_pad));
    wave = take(reals, head.features() * kTile);
    mixed = take(reals, std::min(head.d, kGroup) * head.waves() * kTile);
    x = take(reals, head.d * kTile);
    dx = take(reals, head.d * kTile);
    sum = take(reals, std::max<int64_t>(batch, 1) * panels * width * kTile);
    code = take(reals, 16 * 16 * width);
    packed = take(reals, mix.z != nullptr ? panels * width * head.features() : 0);
    offset = take(reals, kTile);
    end = reals;
    rest = take(doubles, pairs + lanes_pad);
    quarter = take(doubles, pairs + lanes_pad);
    doubles_end = doubles;
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

/// Splits frequency n + phase into quarter turns and a rest, in double.
///
/// The top 24 bits of f times a whole position below 2^29 are exact, so whole turns
/// come off that product without any error; what is left of f gives less than a few
/// turns at such a position.
HWY_NOINLINE inline void reduce_angles(const double* frequency, const double* phase,
                                       double position, int64_t count, double* rest,
                                       double* quarter) {
  const hn::ScalableTag<double> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto n = hn::Set(tag, position), four = hn::Set(tag, 4.0);
  const hn::Repartition<uint64_t, decltype(tag)> bits;
  const auto top = hn::BitCast(tag, hn::Set(bits, ~uint64_t{0} << 29));
  for (int64_t i = 0; i < count; i += lanes) {
    auto f = hn::Zero(tag), p = f;
    if (i + lanes <= count) {
      f = hn::LoadU(tag, frequency + i);
      if (phase != nullptr) p = hn::LoadU(tag, phase + i);
    } else {
      std::fill_n(rest + i, lanes, 0.0);
      std::copy_n(frequency + i, count - i, rest + i);
      f = hn::LoadU(tag, rest + i);
      if (phase != nullptr) {
        std::copy_n(phase + i, count - i, rest + i);
        p = hn::LoadU(tag, rest + i);
      }
    }
    const auto high = hn::And(f, top), low = hn::Sub(f, high);
    const auto turns = hn::Mul(high, n);
    const auto part = hn::Sub(turns, hn::Round(turns));
    const auto angle = hn::Add(hn::Add(part, hn::Mul(low, n)), p);
    const auto quarters = hn::Round(hn::Mul(angle, four));
    hn::StoreU(hn::Sub(angle, hn::Mul(quarters, hn::Set(tag, 0.25))), tag, rest + i);
    hn::StoreU(quarters, tag, quarter + i);
  }
}

template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> load_as(const double* from) {
  if constexpr (sizeof(T) == 8) {
    return hn::LoadU(hn::ScalableTag<double>(), from);
  } else {
    const hn::ScalableTag<float> tag;
    HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
    const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
    for (int64_t i = 0; i < lanes; ++i) buffer[i] = static_cast<float>(from[i]);
    return hn::Load(tag, buffer);
  }
}

/// cos and sin of every pair (d, k) at one position: to[pair * step] and
/// to[pair * step + sine_at].
template <class T>
HWY_NOINLINE void waves_at(const SineWork<T>& work, const double* frequency,
                           const double* phase, double position, int64_t pairs, T* to,
                           int64_t step, int64_t sine_at) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  reduce_angles(frequency, phase, position, pairs, work.rest, work.quarter);
  HWY_ALIGN T buffer[2 * HWY_MAX_BYTES / sizeof(T)];
  for (int64_t i = 0; i < pairs; i += lanes) {
    auto c = hn::Zero(tag), s = c;
    cos_sin<T>(tag, load_as<T>(work.rest + i), load_as<T>(work.quarter + i), c, s);
    const int64_t count = std::min(lanes, pairs - i);
    hn::StoreU(c, tag, buffer);
    hn::StoreU(s, tag, buffer + lanes);
    for (int64_t j = 0; j < count; ++j) {
      to[(i + j) * step] = buffer[j];
      to[(i + j) * step + sine_at] = buffer[lanes + j];
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
HWY_NOINLINE void place_tile(const SineHead& head, const SineSide& side, bool counting,
                             int64_t first, int64_t rows, int64_t padded,
                             const SineWork<T>& work, SineScratch<T>& scratch) {
  const int64_t pairs = head.d * head.sines;
  const double* positions = side.positions + first;
  for (int64_t j = 0; j < rows; ++j)
    work.offset[j] = static_cast<T>(positions[j] - positions[0]);
  std::fill(work.offset + rows, work.offset + kTile, T{0});
  if (counting) {
    for (; scratch.steps < rows; ++scratch.steps)
      waves_at(work, head.frequency, nullptr, static_cast<double>(scratch.steps), pairs,
               work.steps + scratch.steps, 2 * kTile, kTile);
    waves_at(work, head.frequency, side.phase, positions[0], pairs, work.base, 1,
             pairs);
  } else {
    for (int64_t j = 0; j < rows; ++j)
      waves_at(work, head.frequency, side.phase, positions[j], pairs, work.steps + j,
               2 * kTile, kTile);
    std::fill_n(work.base, pairs, T{1});
    std::fill_n(work.base + pairs, pairs, T{0});
    scratch.steps = 0;
  }
  // The lanes beyond the rows must hold numbers: they are multiplied by zeros.
  const int64_t ready = std::max(rows, scratch.steps);
  for (int64_t i = 0; i < 2 * pairs && ready < padded; ++i)
    std::fill(work.steps + i * kTile + ready, work.steps + i * kTile + padded, T{0});
}

/// Rows [first, first + rows) of batch row b, turned to [cols, J]; zeros after them, so
/// that the padding of a tile adds nothing.
template <class T>
HWY_NOINLINE void load_turned(SineRows<const T> from, int64_t b, int64_t first,
                              int64_t rows, int64_t cols, T* to) {
  for (int64_t c = 0; c < cols; ++c) {
    const T* source = from.at(b, first) + c * from.col_step;
    T* const row = to + c * kTile;
    for (int64_t j = 0; j < rows; ++j) row[j] = source[j * from.row_step];
    std::fill(row + rows, row + kTile, T{0});
  }
}

/// The other way.
template <class T>
HWY_NOINLINE void store_turned(const T* from, int64_t b, int64_t first, int64_t rows,
                               int64_t cols, SineRows<T> to) {
  for (int64_t j = 0; j < rows; ++j) {
    T* const target = to.at(b, first + j);
    for (int64_t c = 0; c < cols; ++c) target[c * to.col_step] = from[c * kTile + j];
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
