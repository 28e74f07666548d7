// The one matrix product under every kernel: C[m, panel] += A[m, depth] B[depth,
// panel], where a panel is a strip of two vectors of columns.
//
// Matrices that serve as B or C are stored panel by panel, so that a row of a
// panel is one or two cache lines and a whole panel is contiguous: with plain
// row-major storage and a width such as 256 the rows of a strip would fall into
// four cache sets only. A is read by broadcasting single numbers, so it may have
// any steps, and a transposed A costs nothing.
//
// Accumulators are named variables: g++ 12 spills an array of vectors.

// Compiled once per instruction set: the guard toggles with Highway's.
#if defined(LAGWISE_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_TILE_INL_H_
#undef LAGWISE_KERNELS_TILE_INL_H_
#else
#define LAGWISE_KERNELS_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Columns of a panel.
template <class T>
HWY_INLINE int64_t panel_width() {
  return 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

/// The left factor: element (i, p) at data[i * row + p * col].
template <class T>
struct Left {
  const T* data;
  int64_t row;
  int64_t col;
  Left from_row(int64_t i) const { return {data + i * row, row, col}; }
};

// A row of a tile is two vectors. These are functions, not lambdas, because g++
// must inline them or the accumulators leave their registers.
template <class Tag, class T, class V>
HWY_INLINE void load_pair(Tag tag, const T* from, V& left, V& right) {
  left = hn::LoadU(tag, from);
  right = hn::LoadU(tag, from + hn::Lanes(tag));
}
template <class Tag, class T, class V>
HWY_INLINE void store_pair(Tag tag, V left, V right, T* to) {
  hn::StoreU(left, tag, to);
  hn::StoreU(right, tag, to + hn::Lanes(tag));
}
template <class Tag, class T, class V>
HWY_INLINE void store_sum(Tag tag, V left, V right, bool keep, T* to) {
  if (keep) {
    left = hn::Add(left, hn::LoadU(tag, to));
    right = hn::Add(right, hn::LoadU(tag, to + hn::Lanes(tag)));
  }
  store_pair(tag, left, right, to);
}
template <class Tag, class T, class V>
HWY_INLINE void add_pair(Tag tag, T a, V b_left, V b_right, V& left, V& right) {
  const auto x = hn::Set(tag, a);
  left = hn::MulAdd(x, b_left, left);
  right = hn::MulAdd(x, b_right, right);
}

/// C[kRows, panel] = (keep ? C : 0) + A[kRows, depth] B[depth, panel]. C is added
/// last: sums of sums lose less than one long sum.
template <int kRows, class T>
HWY_INLINE void tile(Left<T> left, const T* HWY_RESTRICT b, int64_t b_step,
                     T* HWY_RESTRICT c, int64_t c_step, int64_t depth, bool keep) {
  const hn::ScalableTag<T> tag;
  auto c00 = hn::Zero(tag), c01 = c00, c10 = c00, c11 = c00, c20 = c00, c21 = c00;
  auto c30 = c00, c31 = c00, c40 = c00, c41 = c00, c50 = c00, c51 = c00;
  const T* HWY_RESTRICT a = left.data;
  const int64_t row = left.row;
  for (int64_t p = 0; p < depth; ++p, a += left.col, b += b_step) {
    auto b0 = c00, b1 = c00;
    load_pair(tag, b, b0, b1);
    add_pair(tag, a[0], b0, b1, c00, c01);
    if constexpr (kRows > 1) add_pair(tag, a[row], b0, b1, c10, c11);
    if constexpr (kRows > 2) add_pair(tag, a[2 * row], b0, b1, c20, c21);
    if constexpr (kRows > 3) add_pair(tag, a[3 * row], b0, b1, c30, c31);
    if constexpr (kRows > 4) add_pair(tag, a[4 * row], b0, b1, c40, c41);
    if constexpr (kRows > 5) add_pair(tag, a[5 * row], b0, b1, c50, c51);
  }
  store_sum(tag, c00, c01, keep, c);
  if constexpr (kRows > 1) store_sum(tag, c10, c11, keep, c + c_step);
  if constexpr (kRows > 2) store_sum(tag, c20, c21, keep, c + 2 * c_step);
  if constexpr (kRows > 3) store_sum(tag, c30, c31, keep, c + 3 * c_step);
  if constexpr (kRows > 4) store_sum(tag, c40, c41, keep, c + 4 * c_step);
  if constexpr (kRows > 5) store_sum(tag, c50, c51, keep, c + 5 * c_step);
}

/// Rows of the next tile when `left` remain: sixes, and no narrow last tile.
HWY_INLINE int64_t tile_rows(int64_t left) {
  if (left >= 10) return 6;
  if (left > 6) return left == 9 ? 5 : 4;
  return left;
}

/// tile<rows>, for a number of rows known only at run time.
template <class T>
HWY_INLINE void tile_of(int64_t rows, Left<T> a, const T* b, int64_t b_step, T* c,
                        int64_t c_step, int64_t depth, bool keep) {
  switch (rows) {
    case 6:
      return tile<6>(a, b, b_step, c, c_step, depth, keep);
    case 5:
      return tile<5>(a, b, b_step, c, c_step, depth, keep);
    case 4:
      return tile<4>(a, b, b_step, c, c_step, depth, keep);
    case 3:
      return tile<3>(a, b, b_step, c, c_step, depth, keep);
    case 2:
      return tile<2>(a, b, b_step, c, c_step, depth, keep);
    default:
      return tile<1>(a, b, b_step, c, c_step, depth, keep);
  }
}

/// Nothing to do between two tiles.
struct Idle {
  void few() const {}
};

/// C[rows, panel] = (keep ? C : 0) + A[rows, depth] B[depth, panel]. `meanwhile`
/// may ask for memory between the tiles.
template <class T, class Meanwhile = Idle>
HWY_NOINLINE void multiply(Left<T> a, const T* b, int64_t b_step, T* c, int64_t c_step,
                           int64_t rows, int64_t depth, bool keep,
                           Meanwhile&& meanwhile = {}) {
  for (int64_t i = 0; i < rows;) {
    const int64_t height = tile_rows(rows - i);
    meanwhile.few();
    tile_of(height, a.from_row(i), b, b_step, c + i * c_step, c_step, depth, keep);
    i += height;
  }
}

/// C[rows, panel] += tril(A)[rows, rows] B[rows, panel], the diagonal included.
/// Above the diagonal nothing is touched: a zero there would still carry a NaN of
/// B from the future into the past.
template <class T>
HWY_NOINLINE void multiply_lower(Left<T> a, const T* b, int64_t b_step, T* c,
                                 int64_t c_step, int64_t rows) {
  const hn::ScalableTag<T> tag;
  for (int64_t i = 0; i < rows;) {
    const int64_t height = tile_rows(rows - i);
    tile_of(height, a.from_row(i), b, b_step, c + i * c_step, c_step, i, true);
    for (int64_t r = i; r < i + height; ++r) {
      auto left = hn::Zero(tag), right = left;
      load_pair(tag, c + r * c_step, left, right);
      for (int64_t p = i; p <= r; ++p) {
        auto b_left = left, b_right = right;
        load_pair(tag, b + p * b_step, b_left, b_right);
        add_pair(tag, a.data[r * a.row + p * a.col], b_left, b_right, left, right);
      }
      store_pair(tag, left, right, c + r * c_step);
    }
    i += height;
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
