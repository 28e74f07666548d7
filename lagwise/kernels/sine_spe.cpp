#include "lagwise/kernels/sine_spe.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/sine_spe.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/sine_wave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Positions and features whose code is formed at once; it stays in the L1 cache.
constexpr int64_t kCodeRows = 16, kCodeDepth = 16;
// So few rows are not worth packing Z for: packing reads and writes all of it.
constexpr int64_t kFewRows = 4;

/// +1 or -1: the sign a fold gives a feature.
template <class T>
HWY_INLINE T sign_of(const SineMix<T>& mix, int64_t feature) {
  return mix.fold != nullptr && mix.fold[feature] < 0 ? T{-1} : T{1};
}

/// The two waves of a pair: cosine row and sine row, each with its own factor.
template <class T>
HWY_INLINE void wave_pair(const T* HWY_RESTRICT steps, T c0, T s0, T c_factor,
                          T s_factor, int64_t rows, T* HWY_RESTRICT cosine,
                          T* HWY_RESTRICT sine) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto cc = hn::Set(tag, c0 * c_factor), cs = hn::Set(tag, s0 * c_factor);
  const auto sc = hn::Set(tag, c0 * s_factor), ss = hn::Set(tag, s0 * s_factor);
  for (int64_t j = 0; j < rows; j += lanes) {
    const auto c = hn::LoadU(tag, steps + j), s = hn::LoadU(tag, steps + kTile + j);
    hn::StoreU(hn::NegMulAdd(cs, s, hn::Mul(cc, c)), tag, cosine + j);
    hn::StoreU(hn::MulAdd(sc, s, hn::Mul(ss, c)), tag, sine + j);
  }
}

/// Every wave of the tile, with the amplitudes and the signs of a fold: [F, J].
template <class T>
HWY_NOINLINE void make_waves(const SineHead& head, const SineMix<T>& mix, int64_t rows,
                             const SineWork<T>& work) {
  const int64_t waves = head.waves();
  T* to = work.wave;
  for (int64_t d = 0; d < head.d; ++d) {
    for (int64_t k = 0; k < head.sines; ++k, to += 2 * kTile) {
      const int64_t pair = d * head.sines + k, feature = d * waves + 2 * k;
      const T a = static_cast<T>(head.amplitude[pair]);
      wave_pair(work.steps + pair * 2 * kTile, work.base[pair],
                work.base[work.pairs + pair], a * sign_of(mix, feature),
                a * sign_of(mix, feature + 1), rows, to, to + kTile);
    }
    if (head.constant == nullptr) continue;
    const T constant = static_cast<T>(head.constant[d]);
    std::fill_n(to, rows, constant * sign_of(mix, d * waves + 2 * head.sines));
    to += kTile;
  }
}

/// [Z; gate] panel by panel: packed[panel][feature][W], zeros beyond the width.
template <class T>
HWY_NOINLINE void pack(const SineHead& head, const SineMix<T>& mix,
                       const SineWork<T>& work) {
  const int64_t width = panel_width<T>(), waves = head.waves();
  T* to = work.packed;
  for (int64_t first = 0; first < work.panels * width; first += width) {
    const int64_t cols = std::min(width, mix.width - first);
    for (int64_t f = 0; f < head.features(); ++f, to += width) {
      const int64_t d = f / waves, i = f % waves;
      const T* from = i < 2 * head.sines ? mix.z + (d * 2 * head.sines + i) * mix.width
                                         : mix.gate + d * mix.width;
      std::copy_n(from + first, cols, to);
      std::fill(to + cols, to + width, T{0});
    }
  }
}

/// mixed = x_d w of features [begin, end): what stands left of Z.
template <class T>
HWY_INLINE void multiply_group(const SineHead& head, const SineWork<T>& work,
                               int64_t begin, int64_t end, int64_t rows) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const T* wave = work.wave + begin * head.waves() * kTile;
  T* to = work.mixed;
  for (int64_t d = begin; d < end; ++d)
    for (int64_t i = 0; i < head.waves(); ++i, wave += kTile, to += kTile)
      for (int64_t j = 0; j < rows; j += lanes)
        hn::StoreU(
            hn::Mul(hn::LoadU(tag, wave + j), hn::LoadU(tag, work.x + d * kTile + j)),
            tag, to + j);
}

/// Rows of panels [panels][stride rows][W] to batch row b of y.
template <class T>
HWY_INLINE void store_panel(const T* from, int64_t from_step, int64_t panel, int64_t b,
                            int64_t first, int64_t rows, int64_t width, SineRows<T> y) {
  const int64_t begin = panel * panel_width<T>();
  const int64_t cols = std::min(panel_width<T>(), width - begin);
  for (int64_t j = 0; j < rows; ++j) {
    T* const to = y.at(b, first + j) + begin * y.col_step;
    for (int64_t c = 0; c < cols; ++c) to[c * y.col_step] = from[j * from_step + c];
  }
}

/// One batch row: (x w) [J, F] times Z, group by group of features.
template <class T>
HWY_NOINLINE void mix_rows(const SineHead& head, const SineMix<T>& mix, bool packed,
                           int64_t b, int64_t first, int64_t rows, int64_t padded,
                           SineRows<const T> x, SineRows<T> y,
                           const SineWork<T>& work) {
  const int64_t width = panel_width<T>(), waves = head.waves(), codes = 2 * head.sines;
  load_turned(x, b, first, rows, head.d, work.x);
  for (int64_t d = 0; d < head.d; d += kGroup) {
    const int64_t end = std::min(d + kGroup, head.d);
    multiply_group(head, work, d, end, padded);
    for (int64_t p = 0; p < work.panels; ++p) {
      T* const sum = work.sum + p * width * kTile;
      if (packed) {
        const T* z = work.packed + (p * head.features() + d * waves) * width;
        multiply(Left<T>{work.mixed, 1, kTile}, z, width, sum, width, rows,
                 (end - d) * waves, d > 0);
        continue;
      }
      for (int64_t i = d; i < end; ++i) {  // straight from where Z lies
        const T* u = work.mixed + (i - d) * waves * kTile;
        multiply(Left<T>{u, 1, kTile}, mix.z + i * codes * mix.width + p * width,
                 mix.width, sum, width, rows, codes, i > 0);
        if (waves == codes) continue;
        multiply(Left<T>{u + codes * kTile, 1, kTile},
                 mix.gate + i * mix.width + p * width, mix.width, sum, width, rows, 1,
                 true);
      }
    }
  }
  for (int64_t p = 0; p < work.panels; ++p)
    store_panel(work.sum + p * width * kTile, width, p, b, first, rows, mix.width, y);
}

/// All batch rows: the code w Z [J, D, W] of a few positions and features is formed
/// once and multiplied by every row of the batch.
template <class T>
HWY_NOINLINE void mix_batch(const SineHead& head, const SineMix<T>& mix, int64_t first,
                            int64_t rows, SineRows<const T> x, SineRows<T> y,
                            const SineWork<T>& work) {
  const int64_t width = panel_width<T>(), waves = head.waves();
  for (int64_t p = 0; p < work.panels; ++p) {
    for (int64_t j = 0; j < rows; j += kCodeRows) {
      const int64_t height = std::min(kCodeRows, rows - j);
      for (int64_t d = 0; d < head.d; d += kCodeDepth) {
        const int64_t depth = std::min(kCodeDepth, head.d - d);
        for (int64_t i = 0; i < depth; ++i) {
          const int64_t feature = (d + i) * waves;
          multiply(Left<T>{work.wave + feature * kTile + j, 1, kTile},
                   work.packed + (p * head.features() + feature) * width, width,
                   work.code + i * width, kCodeDepth * width, height, waves, false);
        }
        for (int64_t r = 0; r < height; ++r)
          multiply(Left<T>{x.at(0, first + j + r) + d * x.col_step, x.step, x.col_step},
                   work.code + r * kCodeDepth * width, width,
                   work.sum + r * x.count * width, width, x.count, depth, d > 0);
      }
      for (int64_t b = 0; b < x.count; ++b)
        store_panel(work.sum + b * width, x.count * width, p, b, first + j, height,
                    mix.width, y);
    }
  }
}

/// bin += wave x over positions [0, padded). The signs are in the waves.
template <class T>
HWY_INLINE void add_to_bin(const T* HWY_RESTRICT wave, const T* HWY_RESTRICT x,
                           int64_t padded, T* HWY_RESTRICT bin) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t j = 0; j < padded; j += lanes) {
    const auto sum = hn::MulAdd(hn::LoadU(tag, wave + j), hn::LoadU(tag, x + j),
                                hn::LoadU(tag, bin + j));
    hn::StoreU(sum, tag, bin + j);
  }
}

/// All waves of one x over four vectors of positions, which stay in registers.
template <class T>
HWY_INLINE void add_feature(const T* HWY_RESTRICT wave, const T* HWY_RESTRICT x,
                            const int64_t* fold, int64_t waves, T* HWY_RESTRICT bins) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto x0 = hn::LoadU(tag, x), x1 = hn::LoadU(tag, x + lanes);
  const auto x2 = hn::LoadU(tag, x + 2 * lanes), x3 = hn::LoadU(tag, x + 3 * lanes);
  for (int64_t i = 0; i < waves; ++i, wave += kTile) {
    const int64_t place = fold[i];
    T* const bin = bins + ((place < 0 ? -place : place) - 1) * kTile;
    const auto w0 = hn::LoadU(tag, wave), w1 = hn::LoadU(tag, wave + lanes);
    const auto w2 = hn::LoadU(tag, wave + 2 * lanes);
    const auto w3 = hn::LoadU(tag, wave + 3 * lanes);
    const auto y0 = hn::MulAdd(w0, x0, hn::LoadU(tag, bin));
    const auto y1 = hn::MulAdd(w1, x1, hn::LoadU(tag, bin + lanes));
    const auto y2 = hn::MulAdd(w2, x2, hn::LoadU(tag, bin + 2 * lanes));
    const auto y3 = hn::MulAdd(w3, x3, hn::LoadU(tag, bin + 3 * lanes));
    hn::StoreU(y0, tag, bin);
    hn::StoreU(y1, tag, bin + lanes);
    hn::StoreU(y2, tag, bin + 2 * lanes);
    hn::StoreU(y3, tag, bin + 3 * lanes);
  }
}

/// Asks for the rows that are folded next, a few cache lines at a time: folding is so
/// cheap that waiting for memory would be most of its time.
template <class T>
class NextRows {
 public:
  NextRows(SineRows<const T> x, int64_t b, int64_t first, int64_t rows, int64_t cols)
      : row_step_(x.row_step), cols_(cols) {
    const bool last = b + 1 == x.count;  // then on to the next tile
    const int64_t from = last ? first + kTile : first;
    if (x.col_step != 1 || from >= rows) return;
    row_ = x.at(last ? 0 : b + 1, from);
    end_ = row_ + std::min(kTile, rows - from) * row_step_;
  }
  HWY_INLINE void few() {
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int64_t i = 0; i < 2 && row_ != end_; ++i) {
      hwy::Prefetch(row_ + col_);
      col_ += kLine;
      if (col_ < cols_) continue;
      col_ = 0;
      row_ += row_step_;
    }
  }

 private:
  const T *row_ = nullptr, *end_ = nullptr;
  int64_t row_step_, cols_, col_ = 0;
};

/// One batch row: each feature added to its bin.
template <class T>
HWY_NOINLINE void fold_rows(const SineHead& head, const SineMix<T>& mix, int64_t b,
                            int64_t first, int64_t rows, int64_t padded,
                            SineRows<const T> x, SineRows<T> y, NextRows<T> next,
                            const SineWork<T>& work) {
  const int64_t four = 4 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t waves = head.waves();
  load_turned(x, b, first, rows, head.d, work.x);
  std::fill_n(work.sum, mix.width * kTile, T{0});
  for (int64_t d = 0; d < head.d; ++d) {
    next.few();
    const T* wave = work.wave + d * waves * kTile;
    const T* x_row = work.x + d * kTile;
    const int64_t* fold = mix.fold + d * waves;
    if (padded == kTile && kTile % four == 0) {
      for (int64_t j = 0; j < kTile; j += four)
        add_feature(wave + j, x_row + j, fold, waves, work.sum + j);
      continue;
    }
    for (int64_t i = 0; i < waves; ++i)
      add_to_bin(wave + i * kTile, x_row, padded,
                 work.sum + ((fold[i] < 0 ? -fold[i] : fold[i]) - 1) * kTile);
  }
  store_turned(work.sum, b, first, rows, mix.width, y);
}

template <class T>
void encode(const SineHead& head, const SineMix<T>& mix, const SineSide& side,
            SineRows<const T> x, SineRows<T> y, SineScratch<T>& scratch) noexcept {
  const SineWork<T> work(head, mix, x.count, scratch.reals, scratch.doubles);
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const bool dense = mix.z != nullptr, counting = counts_up(side);
  const bool in_place = side.rows <= kFewRows && mix.width % panel_width<T>() == 0;
  // 2 P B D R flops against 2 (P + B) D R.
  const bool by_code = dense && x.count > 1 && side.rows > kFewRows;
  if (dense && !scratch.packed && (by_code || !in_place)) {
    pack(head, mix, work);
    scratch.packed = true;
  }
  load_angles(head, side, work);
  for (int64_t first = 0; first < side.rows; first += kTile) {
    const int64_t rows = std::min(kTile, side.rows - first);
    const int64_t padded = round_up(rows, lanes);
    place_tile(side, counting, first, rows, padded, work, scratch);
    make_waves(head, mix, padded, work);
    if (by_code) {
      mix_batch(head, mix, first, rows, x, y, work);
      continue;
    }
    for (int64_t b = 0; b < x.count; ++b) {
      if (dense)
        mix_rows(head, mix, scratch.packed, b, first, rows, padded, x, y, work);
      else
        fold_rows(head, mix, b, first, rows, padded, x, y,
                  NextRows<T>(x, b, first, side.rows, head.d), work);
    }
  }
}

template <class T>
SineScratchSize scratch_of(const SineHead& head, const SineMix<T>& mix, int64_t batch) {
  const SineWork<T> work(head, mix, batch, nullptr, nullptr);
  return {work.reals_used, work.doubles_used};
}

template <class T>
constexpr Kernels<sine_scratch<T>, sine_encode<T>> kKernels = {{scratch_of<T>},
                                                               {encode<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
SineScratchSize sine_scratch(const SineHead& head, const SineMix<T>& mix,
                             int64_t batch) {
  return chosen<T, sine_scratch<T>>(head, mix, batch);
}
template <class T>
void sine_encode(const SineHead& head, const SineMix<T>& mix, const SineSide& side,
                 SineRows<const T> x, SineRows<T> y, SineScratch<T>& scratch) noexcept {
  chosen<T, sine_encode<T>>(head, mix, side, x, y, scratch);
}

LAGWISE_INSTANTIATE(sine_scratch)
LAGWISE_INSTANTIATE(sine_encode)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
