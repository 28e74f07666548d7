// Filtered noise of one feature and one panel of realisations, in pieces, by two
// methods with one interface:
//
//     begin(z, piece)           look at the samples of a piece
//     code(side, d)             scale sum_j a_d[j] z[c + j] of its cells, [rows, panel]
//     add_gradient(side, g)     gradient[j] += sum_c z[c + j] g[c]
//     take_gradient(side, to)   to[j] = the sum of its lanes
//
// Direct is a product with a Toeplitz matrix, read from one padded kernel; Fourier
// works on overlapping blocks of a line (overlap-save).

// Compiled once per instruction set: the guard toggles with Highway's.
#if defined(LAGWISE_KERNELS_CONV_CODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_CONV_CODE_INL_H_
#undef LAGWISE_KERNELS_CONV_CODE_INL_H_
#else
#define LAGWISE_KERNELS_CONV_CODE_INL_H_
#endif

#include <algorithm>
#include <bit>

#include "lagwise/kernels/conv_spe.h"
#include "lagwise/kernels/panel_fft-inl.h"
#include "lagwise/kernels/simd/scratch.h"
#include "lagwise/kernels/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

/// Samples of a panel: those of (p0, p1, p2), from the window's origin, at
/// data + sum_i p_i step_i.
template <class T>
struct Samples {
  const T* data;
  std::array<int64_t, 3> step;
};

/// Cells of a window: `rows` of them from `first`.
struct Piece {
  int64_t first, rows;
};

template <class T>
T sum_of_row(const T* row, int64_t width) {
  T sum = 0;
  for (int64_t l = 0; l < width; ++l) sum += row[l];
  return sum;
}

template <class T>
class Direct {
 public:
  static constexpr int64_t kTile = 6;    // rows of the largest tile
  static constexpr int64_t kPiece = 96;  // rows: the code stays in the first cache

  Direct(const ConvProblem<T>& p, Scratch<T>& scratch)
      : window_(p.window),
        width_(panel_width<T>()),
        lines_(p.window.kernel[0] * p.window.kernel[1]),
        last_(p.window.kernel[2]),
        padded_(last_ + 2 * kTile),
        pieces_per_line_((p.window.extent[2] + kPiece - 1) / kPiece),
        kernels_(scratch.take(p.sides * p.d * lines_ * padded_)),
        code_(scratch.take(kPiece * width_)),
        gradient_(scratch.take(p.sides * p.window.taps() * width_)),
        features_(p.d),
        sides_(p.sides) {}

  /// Kernels scaled, each row of taps between zeros: A[i, p] = a[p - i] of a tile is
  /// then one array, read with a row step of -1.
  void set_kernel(int side, const T* kernel, T scale) {
    T* to = padded_kernel(side, 0);
    for (int64_t row = 0; row < features_ * lines_; ++row, to += padded_) {
      std::fill_n(to, padded_, T{0});
      for (int64_t j = 0; j < last_; ++j)
        to[kTile + j] = scale * kernel[row * last_ + j];
    }
  }

  int64_t pieces() const {
    return window_.extent[0] * window_.extent[1] * pieces_per_line_;
  }
  Piece piece(int64_t i) const {
    const int64_t line = i / pieces_per_line_, at = i % pieces_per_line_ * kPiece;
    return {line * window_.extent[2] + at, std::min(kPiece, window_.extent[2] - at)};
  }
  void begin(const Samples<T>& z, int64_t i) {
    const int64_t line = i / pieces_per_line_;
    const int64_t at = i % pieces_per_line_ * kPiece;
    z_ = {z.data + line / window_.extent[1] * z.step[0] +
              line % window_.extent[1] * z.step[1] + at * z.step[2],
          z.step};
    rows_ = piece(i).rows;
  }

  const T* code(int side, int64_t d) {
    const T* a = padded_kernel(side, d) + kTile;
    for (int64_t row = 0; row < lines_; ++row, a += padded_) {
      const T* const z = line_of_samples(row);
      for (int64_t i = 0; i < rows_;) {
        const int64_t height = tile_rows(rows_ - i);
        tile_of<T>(height, {a, -1, 1}, z + i * z_.step[2], z_.step[2],
                   code_ + i * width_, width_, last_ + height - 1, row > 0);
        i += height;
      }
    }
    return code_;
  }

  void clear_gradient() {
    std::fill_n(gradient_, sides_ * window_.taps() * width_, T{0});
  }
  void add_gradient(int side, const T* g) {
    for (int64_t row = 0; row < lines_; ++row)
      for (int64_t j = 0; j < last_; j += 3)
        add_taps(line_of_samples(row) + j * z_.step[2], g,
                 std::min<int64_t>(3, last_ - j),
                 gradient_ + (side * window_.taps() + row * last_ + j) * width_);
  }
  void take_gradient(int side, T scale, T* to) {
    const T* const from = gradient_ + side * window_.taps() * width_;
    for (int64_t j = 0; j < window_.taps(); ++j)
      to[j] = scale * sum_of_row(from + j * width_, width_);
  }

 private:
  T* padded_kernel(int side, int64_t d) const {
    return kernels_ + (side * features_ + d) * lines_ * padded_;
  }
  const T* line_of_samples(int64_t row) const {
    return z_.data + row / window_.kernel[1] * z_.step[0] +
           row % window_.kernel[1] * z_.step[1];
  }

  /// to[j] += sum_c z[c + j] g[c] for up to three j at once.
  HWY_NOINLINE void add_taps(const T* z, const T* g, int64_t taps, T* to) const {
    const hn::ScalableTag<T> tag;
    const int64_t step = z_.step[2], second = taps > 1 ? step : 0,
                  third = taps > 2 ? 2 * step : 0;
    auto a0 = hn::Zero(tag), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0;
    for (int64_t i = 0; i < rows_; ++i, z += step, g += width_) {
      auto g0 = a0, g1 = a0, z0 = a0, z1 = a0;
      load_pair(tag, g, g0, g1);
      load_pair(tag, z, z0, z1);
      a0 = hn::MulAdd(z0, g0, a0), a1 = hn::MulAdd(z1, g1, a1);
      load_pair(tag, z + second, z0, z1);
      b0 = hn::MulAdd(z0, g0, b0), b1 = hn::MulAdd(z1, g1, b1);
      load_pair(tag, z + third, z0, z1);
      c0 = hn::MulAdd(z0, g0, c0), c1 = hn::MulAdd(z1, g1, c1);
    }
    store_sum(tag, a0, a1, true, to);
    if (taps > 1) store_sum(tag, b0, b1, true, to + width_);
    if (taps > 2) store_sum(tag, c0, c1, true, to + 2 * width_);
  }

  ConvWindow window_;
  int64_t width_, lines_, last_, padded_, pieces_per_line_;
  T *kernels_, *code_, *gradient_;
  int64_t features_, sides_, rows_ = 0;
  Samples<T> z_ = {};
};

/// The block length L with the least work for a line; L - taps + 1 cells a block.
/// Longer ones would save work on paper, but a panel of 512 rows fills the first cache.
inline int64_t fourier_length(int64_t taps, int64_t cells) {
  const auto least = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(taps)));
  int64_t best = 0, best_work = 0;
  for (int64_t length = std::max<int64_t>(16, least);
       length <= std::max<int64_t>(256, 2 * least); length *= 2) {
    const int64_t rows = length - taps + 1, blocks = (cells + rows - 1) / rows;
    const int64_t work =
        blocks * length *
        (2 + static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(length))));
    if (best == 0 || work < best_work) best = length, best_work = work;
  }
  return best;
}

template <class T>
class Fourier {
 public:
  Fourier(const ConvProblem<T>& p, Scratch<T>& scratch)
      : cells_(p.window.extent[2]),
        taps_(p.window.kernel[2]),
        width_(panel_width<T>()),
        length_(fourier_length(taps_, cells_)),
        rows_a_block_(length_ - taps_ + 1),
        twiddles_(scratch.take(2 * length_)),
        spectra_(scratch.take(p.sides * p.d * 2 * length_)),
        noise_(scratch.take(length_ * width_)),
        code_(scratch.take(length_ * width_)),
        gradient_(scratch.take(p.sides * length_ * width_)),
        features_(p.d),
        sides_(p.sides) {
    if (twiddles_ != nullptr) fill_twiddles(length_, twiddles_);
  }

  /// Spectra of all kernels, as many at once as there are lanes. Backward multiplies
  /// by L; they are divided by it here.
  void set_kernel(int side, const T* kernel, T scale) {
    const int64_t lanes = width_ / 2;
    scale /= static_cast<T>(length_);
    for (int64_t d = 0; d < features_; d += lanes) {
      const int64_t here = std::min(lanes, features_ - d);
      std::fill_n(code_, length_ * width_, T{0});
      for (int64_t l = 0; l < here; ++l)
        for (int64_t j = 0; j < taps_; ++j)
          code_[j * width_ + l] = scale * kernel[(d + l) * taps_ + j];
      fft_forward(code_, length_, twiddles_);
      for (int64_t l = 0; l < here; ++l)
        for (int64_t f = 0; f < length_; ++f) {
          spectrum(side, d + l)[2 * f] = code_[f * width_ + l];
          spectrum(side, d + l)[2 * f + 1] = code_[f * width_ + lanes + l];
        }
    }
  }

  int64_t pieces() const { return (cells_ + rows_a_block_ - 1) / rows_a_block_; }
  Piece piece(int64_t i) const {
    const int64_t first = i * rows_a_block_;
    return {first, std::min(rows_a_block_, cells_ - first)};
  }
  void begin(const Samples<T>& z, int64_t i) {
    rows_ = piece(i).rows;
    load(z.data + piece(i).first * z.step[2], z.step[2], rows_ + taps_ - 1, noise_);
    fft_forward(noise_, length_, twiddles_);
  }

  /// The spectrum of a correlation with a real kernel is Z conj(A).
  HWY_NOINLINE const T* code(int side, int64_t d) {
    const hn::ScalableTag<T> tag;
    const T* const a = spectrum(side, d);
    for (int64_t f = 0; f < length_; ++f)
      store_complex(
          tag,
          times_conjugate(load_complex(tag, noise_ + f * width_), twiddle(tag, a, f)),
          code_ + f * width_);
    fft_backward(code_, length_, twiddles_);
    return code_;
  }

  void clear_gradient() { std::fill_n(gradient_, sides_ * length_ * width_, T{0}); }

  /// sum_c z[c + j] conj(g[c]) has the spectrum Z conj(G); of two realisations in one
  /// complex number its real part is the sum of both products. The sum over panels and
  /// blocks is taken here, so that one transform back serves them all.
  HWY_NOINLINE void add_gradient(int side, const T* g) {
    const hn::ScalableTag<T> tag;
    load(g, width_, rows_, code_);
    fft_forward(code_, length_, twiddles_);
    T* const sum = gradient_ + side * length_ * width_;
    for (int64_t i = 0; i < length_ * width_; i += width_)
      store_complex(tag,
                    add(load_complex(tag, sum + i),
                        times_conjugate(load_complex(tag, noise_ + i),
                                        load_complex(tag, code_ + i))),
                    sum + i);
  }
  void take_gradient(int side, T scale, T* to) {
    T* const sum = gradient_ + side * length_ * width_;
    fft_backward(sum, length_, twiddles_);
    scale /= static_cast<T>(length_);
    for (int64_t j = 0; j < taps_; ++j)
      to[j] = scale * sum_of_row(sum + j * width_, width_ / 2);
  }

 private:
  T* spectrum(int side, int64_t d) const {
    return spectra_ + (side * features_ + d) * 2 * length_;
  }
  /// `rows` rows and zeros up to the length.
  void load(const T* from, int64_t step, int64_t rows, T* to) const {
    if (step == width_) {
      std::copy_n(from, rows * width_, to);
    } else {
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(from + i * step, width_, to + i * width_);
    }
    std::fill_n(to + rows * width_, (length_ - rows) * width_, T{0});
  }

  int64_t cells_, taps_, width_, length_, rows_a_block_;
  T *twiddles_, *spectra_, *noise_, *code_, *gradient_;
  int64_t features_, sides_, rows_ = 0;
};

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
