#include <algorithm>
#include <numbers>

#include "lagwise/kernels/sine_spe.h"

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/sine_spe_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/sine_wave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The gradient of one feature over the tile: g_j = sign row_j.
template <class T>
struct FeatureGradient {
  const T* row;
  T sign;
};

/// Gradients of the features of a group of d, found by (d, wave).
template <class T>
class GroupGradient {
 public:
  /// Dense: g = Z dy^T, [features, J]; those of the codes first, then the gates'.
  GroupGradient(const SineHead& head, const SineMix<T>& mix, int64_t begin, int64_t end,
                int64_t padded, const SineWork<T>& work)
      : head_(head), mix_(mix), work_(work), begin_(begin) {
    if (mix.z == nullptr) return;
    const int64_t codes = 2 * head.sines * (end - begin);
    gates_ = work.mixed + codes * kTile;
    for (int64_t j = 0; j < padded; j += panel_width<T>()) {
      multiply(Left<T>{mix.z + begin * 2 * head.sines * mix.width, mix.width, 1},
               work.sum + j, kTile, work.mixed + j, kTile, codes, mix.width, false);
      if (head.constant != nullptr)
        multiply(Left<T>{mix.gate + begin * mix.width, mix.width, 1}, work.sum + j,
                 kTile, gates_ + j, kTile, end - begin, mix.width, false);
    }
  }

  FeatureGradient<T> of(int64_t d, int64_t wave) const {
    if (mix_.z == nullptr) {
      const int64_t place = mix_.fold[d * head_.waves() + wave];
      const int64_t bin = (place < 0 ? -place : place) - 1;
      return {work_.sum + bin * kTile, place < 0 ? T{-1} : T{1}};
    }
    const int64_t i = d - begin_, codes = 2 * head_.sines;
    if (wave == codes) return {gates_ + i * kTile, T{1}};
    return {work_.mixed + (i * codes + wave) * kTile, T{1}};
  }

 private:
  const SineHead& head_;
  const SineMix<T>& mix_;
  const SineWork<T>& work_;
  int64_t begin_;
  T* gates_ = nullptr;
};

/// Sums over a tile that one pair (d, k) contributes.
template <class T>
struct PairSums {
  T along, across, moment;  // x (c g_c + s g_s); x (c g_s - s g_c); offset times that
};

template <class T>
HWY_NOINLINE PairSums<T> pair_gradient(const T* HWY_RESTRICT steps, T c0, T s0,
                                       T amplitude, FeatureGradient<T> of_cosine,
                                       FeatureGradient<T> of_sine,
                                       const T* HWY_RESTRICT x,
                                       const T* HWY_RESTRICT offset, int64_t rows,
                                       T* HWY_RESTRICT dx) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto base_c = hn::Set(tag, c0), base_s = hn::Set(tag, s0);
  const auto a = hn::Set(tag, amplitude);
  const auto c_sign = hn::Set(tag, of_cosine.sign), s_sign = hn::Set(tag, of_sine.sign);
  auto along = hn::Zero(tag), across = along, moment = along;
  for (int64_t j = 0; j < rows; j += lanes) {
    const auto step_c = hn::LoadU(tag, steps + j);
    const auto step_s = hn::LoadU(tag, steps + kTile + j);
    const auto c = hn::NegMulAdd(base_s, step_s, hn::Mul(base_c, step_c));
    const auto s = hn::MulAdd(base_c, step_s, hn::Mul(base_s, step_c));
    const auto gc = hn::Mul(c_sign, hn::LoadU(tag, of_cosine.row + j));
    const auto gs = hn::Mul(s_sign, hn::LoadU(tag, of_sine.row + j));
    const auto parallel = hn::MulAdd(s, gs, hn::Mul(c, gc));
    const auto normal = hn::NegMulAdd(s, gc, hn::Mul(c, gs));
    const auto xj = hn::LoadU(tag, x + j);
    hn::StoreU(hn::MulAdd(a, parallel, hn::LoadU(tag, dx + j)), tag, dx + j);
    along = hn::MulAdd(xj, parallel, along);
    const auto turned = hn::Mul(xj, normal);
    across = hn::Add(across, turned);
    moment = hn::MulAdd(turned, hn::LoadU(tag, offset + j), moment);
  }
  return {hn::GetLane(hn::SumOfLanes(tag, along)),
          hn::GetLane(hn::SumOfLanes(tag, across)),
          hn::GetLane(hn::SumOfLanes(tag, moment))};
}

/// The constant wave: dx += constant g; returns sum x g.
template <class T>
HWY_NOINLINE T gate_gradient(T constant, FeatureGradient<T> of, const T* HWY_RESTRICT x,
                             int64_t rows, T* HWY_RESTRICT dx) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto factor = hn::Set(tag, constant * of.sign), sign = hn::Set(tag, of.sign);
  auto sum = hn::Zero(tag);
  for (int64_t j = 0; j < rows; j += lanes) {
    const auto g = hn::LoadU(tag, of.row + j);
    hn::StoreU(hn::MulAdd(factor, g, hn::LoadU(tag, dx + j)), tag, dx + j);
    sum = hn::MulAdd(hn::Mul(sign, g), hn::LoadU(tag, x + j), sum);
  }
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// One feature d of a tile whose first position is `start`.
template <class T>
HWY_INLINE void feature_gradient(const SineHead& head, const GroupGradient<T>& of,
                                 int64_t d, double start, int64_t rows,
                                 const SineWork<T>& work, const SineGradients& to) {
  const T* x = work.x + d * kTile;
  T* dx = work.dx + d * kTile;
  for (int64_t k = 0; k < head.sines; ++k) {
    const int64_t pair = d * head.sines + k;
    const double amplitude = head.amplitude[pair];
    const PairSums<T> sums =
        pair_gradient(work.steps + pair * 2 * kTile, work.base[pair],
                      work.base[work.pairs + pair], static_cast<T>(amplitude),
                      of.of(d, 2 * k), of.of(d, 2 * k + 1), x, work.offset, rows, dx);
    const double turn = 2 * std::numbers::pi * amplitude;
    to.amplitude[pair] += double(sums.along);
    to.frequency[pair] += turn * (start * double(sums.across) + double(sums.moment));
    if (to.phase != nullptr) to.phase[pair] += turn * double(sums.across);
  }
  if (head.constant == nullptr) return;
  const T constant = static_cast<T>(head.constant[d]);
  to.constant[d] +=
      double(gate_gradient(constant, of.of(d, 2 * head.sines), x, rows, dx));
}

template <class T>
void gradient(const SineHead& head, const SineMix<T>& mix, const SineSide& side,
              SineRows<const T> x, SineRows<const T> dy, SineRows<T> dx,
              const SineGradients& to, SineScratch<T>& scratch) noexcept {
  const SineWork<T> work(head, mix, 1, scratch.reals, scratch.doubles);
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const bool counting = counts_up(side);
  load_angles(head, side, work);
  for (int64_t first = 0; first < side.rows; first += kTile) {
    const int64_t rows = std::min(kTile, side.rows - first);
    const int64_t padded = round_up(rows, lanes);
    place_tile(side, counting, first, rows, padded, work, scratch);
    for (int64_t b = 0; b < x.count; ++b) {
      load_turned(x, b, first, rows, head.d, work.x);
      load_turned(dy, b, first, rows, mix.width, work.sum);
      std::fill_n(work.dx, head.d * kTile, T{0});
      for (int64_t d = 0; d < head.d; d += kGroup) {
        const int64_t end = std::min(d + kGroup, head.d);
        const GroupGradient<T> group(head, mix, d, end, padded, work);
        for (int64_t i = d; i < end; ++i)
          feature_gradient(head, group, i, side.positions[first], padded, work, to);
      }
      store_turned(work.dx, b, first, rows, head.d, dx);
    }
  }
}

template <class T>
constexpr Kernels<sine_gradient<T>> kKernels = {{gradient<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void sine_gradient(const SineHead& head, const SineMix<T>& mix, const SineSide& side,
                   SineRows<const T> x, SineRows<const T> dy, SineRows<T> dx,
                   const SineGradients& to, SineScratch<T>& scratch) noexcept {
  chosen<T, sine_gradient<T>>(head, mix, side, x, dy, dx, to, scratch);
}

LAGWISE_INSTANTIATE(sine_gradient)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
