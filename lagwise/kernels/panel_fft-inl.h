// A Fourier transform of many sequences at once: lanes run over sequences, so the
// butterflies need no shuffles and a twiddle factor is one broadcast.
//
//     X[f] = sum_n x[n] exp(-2 pi i f n / L),      L a power of two
//
// A row of a panel is one complex number of each lane: a vector of real parts, then
// one of imaginary parts. Two real sequences ride in one complex one.
//
// Forward leaves the frequencies in digit-reversed order and backward takes them so:
// products of spectra do not care, and no pass is spent on sorting. Backward does not
// divide by L.

// Compiled once per instruction set: the guard toggles with Highway's.
#if defined(LAGWISE_KERNELS_PANEL_FFT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_PANEL_FFT_INL_H_
#undef LAGWISE_KERNELS_PANEL_FFT_INL_H_
#else
#define LAGWISE_KERNELS_PANEL_FFT_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <numbers>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A complex number per lane.
template <class V>
struct Complex {
  V re, im;
};

template <class Tag, class T>
HWY_INLINE Complex<hn::Vec<Tag>> load_complex(Tag tag, const T* from) {
  return {hn::LoadU(tag, from), hn::LoadU(tag, from + hn::Lanes(tag))};
}
template <class Tag, class V, class T>
HWY_INLINE void store_complex(Tag tag, Complex<V> x, T* to) {
  hn::StoreU(x.re, tag, to);
  hn::StoreU(x.im, tag, to + hn::Lanes(tag));
}
template <class V>
HWY_INLINE Complex<V> add(Complex<V> a, Complex<V> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class V>
HWY_INLINE Complex<V> sub(Complex<V> a, Complex<V> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class V>
HWY_INLINE Complex<V> times(Complex<V> a, Complex<V> b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
}
/// a conj(b)
template <class V>
HWY_INLINE Complex<V> times_conjugate(Complex<V> a, Complex<V> b) {
  return {hn::MulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::NegMulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}

/// The factors exp(-2 pi i k / L), k < L, as pairs: 2 L numbers.
template <class T>
void fill_twiddles(int64_t length, T* to) {
  for (int64_t k = 0; k < length; ++k) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
    to[2 * k] = static_cast<T>(std::cos(angle));
    to[2 * k + 1] = static_cast<T>(-std::sin(angle));
  }
}

template <class Tag, class T>
HWY_INLINE Complex<hn::Vec<Tag>> twiddle(Tag tag, const T* table, int64_t k) {
  return {hn::Set(tag, table[2 * k]), hn::Set(tag, table[2 * k + 1])};
}

/// Rows k, k + m/4, k + m/2 and k + 3m/4 of every group of m rows, forward.
template <bool kTurn, class T>
HWY_INLINE void forward_fours(T* x, int64_t length, int64_t m, int64_t k,
                              const T* table) {
  const hn::ScalableTag<T> tag;
  const auto width = 2 * static_cast<int64_t>(hn::Lanes(tag));
  const int64_t quarter = m / 4 * width, turn = k * (length / m);
  const auto w1 = twiddle(tag, table, turn), w2 = twiddle(tag, table, 2 * turn),
             w3 = twiddle(tag, table, 3 * turn);
  for (T* at = x + k * width; at < x + length * width; at += m * width) {
    const auto a = load_complex(tag, at), b = load_complex(tag, at + quarter),
               c = load_complex(tag, at + 2 * quarter),
               d = load_complex(tag, at + 3 * quarter);
    const auto s0 = add(a, c), s1 = sub(a, c), s2 = add(b, d), s3 = sub(b, d);
    // -i s3 = (im, -re)
    const Complex<hn::Vec<decltype(tag)>> y1{hn::Add(s1.re, s3.im),
                                             hn::Sub(s1.im, s3.re)};
    const Complex<hn::Vec<decltype(tag)>> y3{hn::Sub(s1.re, s3.im),
                                             hn::Add(s1.im, s3.re)};
    store_complex(tag, add(s0, s2), at);
    store_complex(tag, kTurn ? times(y1, w1) : y1, at + quarter);
    store_complex(tag, kTurn ? times(sub(s0, s2), w2) : sub(s0, s2), at + 2 * quarter);
    store_complex(tag, kTurn ? times(y3, w3) : y3, at + 3 * quarter);
  }
}

/// The opposite, times four.
template <bool kTurn, class T>
HWY_INLINE void backward_fours(T* x, int64_t length, int64_t m, int64_t k,
                               const T* table) {
  const hn::ScalableTag<T> tag;
  using C = Complex<hn::Vec<decltype(tag)>>;
  const auto width = 2 * static_cast<int64_t>(hn::Lanes(tag));
  const int64_t quarter = m / 4 * width, turn = k * (length / m);
  const auto w1 = twiddle(tag, table, turn), w2 = twiddle(tag, table, 2 * turn),
             w3 = twiddle(tag, table, 3 * turn);
  for (T* at = x + k * width; at < x + length * width; at += m * width) {
    C y1 = load_complex(tag, at + quarter), y2 = load_complex(tag, at + 2 * quarter),
      y3 = load_complex(tag, at + 3 * quarter);
    const C y0 = load_complex(tag, at);
    if constexpr (kTurn) {
      y1 = times_conjugate(y1, w1), y2 = times_conjugate(y2, w2);
      y3 = times_conjugate(y3, w3);
    }
    const C s0 = add(y0, y2), s2 = sub(y0, y2), s1 = add(y1, y3), s3 = sub(y1, y3);
    store_complex(tag, add(s0, s1), at);
    store_complex(tag, C{hn::Sub(s2.re, s3.im), hn::Add(s2.im, s3.re)}, at + quarter);
    store_complex(tag, sub(s0, s1), at + 2 * quarter);
    store_complex(tag, C{hn::Add(s2.re, s3.im), hn::Sub(s2.im, s3.re)},
                  at + 3 * quarter);
  }
}

/// Neighbouring rows: their sum and difference. Its own opposite, times two.
template <class T>
HWY_NOINLINE void fft_twos(T* x, int64_t length) {
  const hn::ScalableTag<T> tag;
  const auto width = 2 * static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t i = 0; i < length; i += 2) {
    T* const at = x + i * width;
    const auto a = load_complex(tag, at), b = load_complex(tag, at + width);
    store_complex(tag, add(a, b), at);
    store_complex(tag, sub(a, b), at + width);
  }
}

/// x [L, panel] in place.
template <class T>
HWY_NOINLINE void fft_forward(T* x, int64_t length, const T* table) {
  int64_t m = length;
  for (; m >= 4; m /= 4) {
    forward_fours<false>(x, length, m, 0, table);
    for (int64_t k = 1; k < m / 4; ++k) forward_fours<true>(x, length, m, k, table);
  }
  if (m == 2) fft_twos(x, length);
}

/// The opposite, times L.
template <class T>
HWY_NOINLINE void fft_backward(T* x, int64_t length, const T* table) {
  int64_t m = 4;
  for (int64_t left = length; left >= 4; left /= 4)
    if (left / 4 == 2) m = 8;  // an odd number of halvings: twos come first
  if (length == 2 || m == 8) fft_twos(x, length);
  for (; m <= length; m *= 4) {
    backward_fours<false>(x, length, m, 0, table);
    for (int64_t k = 1; k < m / 4; ++k) backward_fours<true>(x, length, m, k, table);
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
