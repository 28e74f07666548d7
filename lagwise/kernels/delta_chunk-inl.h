// What a chunk writes by the delta rule: the pairs of its keys and the triangular system
// between its rows.

#if defined(LAGWISE_KERNELS_DELTA_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_DELTA_CHUNK_INL_H_
#undef LAGWISE_KERNELS_DELTA_CHUNK_INL_H_
#else
#define LAGWISE_KERNELS_DELTA_CHUNK_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "lagwise/kernels/causal_chunk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

// Rows of a chunk. The inverse of its triangular system grows with them, and so does
// its rounding.
constexpr int64_t kDeltaChunk = 16;
static_assert(kDeltaChunk <= kChunk);

/// pairs[a][b] = (k_a . k_b) times the gates between, for b < a, else 0. Needs w.k_t.
template <class T>
HWY_NOINLINE void pair_keys(const Fade<T>& fade, int64_t rows, Work<T>& w, T* pairs) {
  lower_products<T>({w.k, w.d_padded, 1}, w.k_t, w.d, rows, pairs);
  fade_pairs(fade, rows, pairs);
  for (int64_t a = 0; a < rows; ++a) pairs[a * pair_stride<T>() + a] = T{0};
}

/// Zeros above the diagonal of a C x C matrix.
template <class T>
HWY_INLINE void clear_above(int64_t rows, T* pairs) {
  const int64_t stride = pair_stride<T>();
  for (int64_t a = 0; a < rows; ++a)
    std::fill(pairs + a * stride + a + 1, pairs + (a + 1) * stride, T{0});
}

/// The inverse of the unit triangular I + diag(left) pairs diag(right), row by row:
/// row a is e_a - sum_{b < a} left_a pairs_ab right_b (row b). Null factors are 1.
template <class T>
HWY_NOINLINE void invert_lower(const T* pairs, const T* left, const T* right,
                               int64_t rows, T* inverse) {
  const int64_t stride = pair_stride<T>();
  std::fill(inverse, inverse + rows * stride, T{0});
  for (int64_t a = 0; a < rows; ++a) {
    T* const row = inverse + a * stride;
    for (int64_t b = 0; b < a; ++b) {
      T factor = -pairs[a * stride + b];
      if (left) factor *= left[a];
      if (right) factor *= right[b];
      add_scaled<T>(row, factor, inverse + b * stride, nullptr, b + 1);
    }
    row[a] = T{1};
  }
}

/// x_a = v_a - g_a S^T k_a for one panel of columns: what the state before the chunk does
/// not recall. v [C, W] with v_step between rows; x [C, W] with x_step.
template <class T>
HWY_NOINLINE void unrecalled(const Fade<T>& fade, int64_t rows, const T* s, const T* v,
                             int64_t v_step, Work<T>& w, T* x, int64_t x_step) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  multiply<T>({w.k, w.d_padded, 1}, s, w.width, w.o, w.width, rows, w.d, false,
              w.ahead);
  for (int64_t a = 0; a < rows; ++a) {
    const auto g = hn::Set(tag, fade.by_row ? fade.since[a] : T{1});
    for (int64_t j = 0; j < w.width; j += lanes) {
      const auto recalled = hn::LoadU(tag, w.o + a * w.width + j);
      const auto value = hn::LoadU(tag, v + a * v_step + j);
      hn::StoreU(hn::NegMulAdd(g, recalled, value), tag, x + a * x_step + j);
    }
  }
}

/// to[rows, panel] = lower(matrix) x.
template <class T>
HWY_INLINE void multiply_lower(const T* matrix, const T* x, int64_t x_step,
                               int64_t rows, T* to, int64_t to_step, Ahead<T>& ahead) {
  const CausalRead<T> read{{x, 0, 0}, nullptr, 0,       {matrix, pair_stride<T>(), 1},
                           x,         x_step,  nullptr, nullptr};
  read_causal(read, rows, to, to_step, ahead);
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
