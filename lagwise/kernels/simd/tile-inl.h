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

/// The sums of one tile: up to six rows.
template <class V>
struct Sums {
  V c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51;
  explicit Sums(V zero)
      : c00(zero),
        c01(zero),
        c10(zero),
        c11(zero),
        c20(zero),
        c21(zero),
        c30(zero),
        c31(zero),
        c40(zero),
        c41(zero),
        c50(zero),
        c51(zero) {}
};

/// Calls fn(row, left, right) for rows kFirst .. kRows - 1.
template <int kRows, int kFirst, class V, class Fn>
HWY_INLINE void each_row(Sums<V>& c, const Fn& fn) {
  if constexpr (kFirst < 1 && kRows > 0) fn(0, c.c00, c.c01);
  if constexpr (kFirst < 2 && kRows > 1) fn(1, c.c10, c.c11);
  if constexpr (kFirst < 3 && kRows > 2) fn(2, c.c20, c.c21);
  if constexpr (kFirst < 4 && kRows > 3) fn(3, c.c30, c.c31);
  if constexpr (kFirst < 5 && kRows > 4) fn(4, c.c40, c.c41);
  if constexpr (kFirst < 6 && kRows > 5) fn(5, c.c50, c.c51);
}

/// c_r += a[r row] b for rows kFirst .. kRows - 1.
template <int kRows, int kFirst, class Tag, class T, class V>
HWY_INLINE void add_outer(Tag tag, const T* HWY_RESTRICT a, int64_t row,
                          const T* HWY_RESTRICT b, Sums<V>& c) {
  auto b0 = hn::Zero(tag), b1 = b0;
  load_pair(tag, b, b0, b1);
  if constexpr (kFirst < 1) add_pair(tag, a[0], b0, b1, c.c00, c.c01);
  if constexpr (kFirst < 2 && kRows > 1) add_pair(tag, a[row], b0, b1, c.c10, c.c11);
  if constexpr (kFirst < 3 && kRows > 2)
    add_pair(tag, a[2 * row], b0, b1, c.c20, c.c21);
  if constexpr (kFirst < 4 && kRows > 3)
    add_pair(tag, a[3 * row], b0, b1, c.c30, c.c31);
  if constexpr (kFirst < 5 && kRows > 4)
    add_pair(tag, a[4 * row], b0, b1, c.c40, c.c41);
  if constexpr (kFirst < 6 && kRows > 5)
    add_pair(tag, a[5 * row], b0, b1, c.c50, c.c51);
}

/// c += A[kRows, depth] B[depth, panel].
template <int kRows, class Tag, class T, class V>
HWY_INLINE void add_product(Tag tag, Left<T> left, const T* HWY_RESTRICT b,
                            int64_t b_step, int64_t depth, Sums<V>& c) {
  const T* HWY_RESTRICT a = left.data;
  for (int64_t p = 0; p < depth; ++p, a += left.col, b += b_step)
    add_outer<kRows, 0>(tag, a, left.row, b, c);
}

/// c += tril(A)[kRows, kRows] B[kRows, panel], from column kFirst on. Above the
/// diagonal nothing is touched: a zero there would still carry a NaN of B from the
/// future into the past.
template <int kRows, int kFirst = 0, class Tag, class T, class V>
HWY_INLINE void add_lower(Tag tag, Left<T> left, const T* HWY_RESTRICT b,
                          int64_t b_step, Sums<V>& c) {
  add_outer<kRows, kFirst>(tag, left.data + kFirst * left.col, left.row,
                           b + kFirst * b_step, c);
  if constexpr (kFirst + 1 < kRows)
    add_lower<kRows, kFirst + 1>(tag, left, b, b_step, c);
}

/// c_r *= factor[r]
template <int kRows, class Tag, class T, class V>
HWY_INLINE void scale_rows(Tag tag, const T* factor, Sums<V>& c) {
  each_row<kRows, 0>(c, [&](int r, V& left, V& right) HWY_ATTR {
    const auto f = hn::Set(tag, factor[r]);
    left = hn::Mul(left, f);
    right = hn::Mul(right, f);
  });
}

/// C[kRows, panel] = (keep ? C : 0) + A[kRows, depth] B[depth, panel]. C is added
/// last: sums of sums lose less than one long sum.
template <int kRows, class T>
HWY_INLINE void tile(Left<T> left, const T* HWY_RESTRICT b, int64_t b_step,
                     T* HWY_RESTRICT c, int64_t c_step, int64_t depth, bool keep) {
  const hn::ScalableTag<T> tag;
  Sums<hn::Vec<decltype(tag)>> sums(hn::Zero(tag));
  add_product<kRows>(tag, left, b, b_step, depth, sums);
  each_row<kRows, 0>(sums, [&](int r, auto& x, auto& y) HWY_ATTR {
    store_sum(tag, x, y, keep, c + r * c_step);
  });
}

/// Rows of the next tile when `left` remain: sixes, and no narrow last tile.
HWY_INLINE int64_t tile_rows(int64_t left) {
  if (left >= 10) return 6;
  if (left > 6) return left == 9 ? 5 : 4;
  return left;
}

/// tile<rows>, for a number of rows known only at run time. A switch written out, not
/// a lambda for each number: g++ does not inline those, and a tile of depth 64 lasts
/// hardly longer than passing its arguments through memory.
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

/// A `meanwhile` (see below) that does nothing between two tiles.
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

/// What the rows a of a chunk read:
///
///     factor_a (fade_a (base_a + q_a S) + sum_{b <= a} A_ab v_b)
template <class T>
struct CausalRead {
  Left<T> q;       ///< [C, depth]
  const T* s;      ///< [depth, panel]
  int64_t depth;   ///< 0: no state is read
  Left<T> scores;  ///< [C, C], of which the lower triangle counts
  const T* v;      ///< [C, panel]
  int64_t v_step;
  const T* fade;            ///< [C]; null: 1
  const T* factor;          ///< [C]; null: 1
  const T* base = nullptr;  ///< [C, panel], dense; null: 0
};

template <int kRows, class T>
HWY_INLINE void causal_tile(const CausalRead<T>& read, int64_t i, T* HWY_RESTRICT out,
                            int64_t out_step) {
  const hn::ScalableTag<T> tag;
  const int64_t width = panel_width<T>();
  const Left<T> scores = read.scores.from_row(i);
  Sums<hn::Vec<decltype(tag)>> sums(hn::Zero(tag));
  if (read.base)
    each_row<kRows, 0>(sums, [&](int r, auto& x, auto& y) HWY_ATTR {
      load_pair(tag, read.base + (i + r) * width, x, y);
    });
  add_product<kRows>(tag, read.q.from_row(i), read.s, width, read.depth, sums);
  if (read.fade) scale_rows<kRows>(tag, read.fade + i, sums);
  add_product<kRows>(tag, scores, read.v, read.v_step, i, sums);
  const Left<T> corner{scores.data + i * scores.col, scores.row, scores.col};
  add_lower<kRows>(tag, corner, read.v + i * read.v_step, read.v_step, sums);
  if (read.factor) scale_rows<kRows>(tag, read.factor + i, sums);
  each_row<kRows, 0>(sums, [&](int r, auto& x, auto& y) HWY_ATTR {
    store_pair(tag, x, y, out + (i + r) * out_step);
  });
}

/// causal_tile<rows>, for a number of rows known only at run time.
template <class T>
HWY_INLINE void causal_tile_of(int64_t rows, const CausalRead<T>& read, int64_t i,
                               T* out, int64_t out_step) {
  switch (rows) {
    case 6:
      return causal_tile<6>(read, i, out, out_step);
    case 5:
      return causal_tile<5>(read, i, out, out_step);
    case 4:
      return causal_tile<4>(read, i, out, out_step);
    case 3:
      return causal_tile<3>(read, i, out, out_step);
    case 2:
      return causal_tile<2>(read, i, out, out_step);
    default:
      return causal_tile<1>(read, i, out, out_step);
  }
}

/// out[rows, panel] = the formula of CausalRead, tile by tile.
template <class T, class Meanwhile>
HWY_NOINLINE void read_causal(const CausalRead<T>& read, int64_t rows, T* out,
                              int64_t out_step, Meanwhile&& meanwhile) {
  for (int64_t i = 0; i < rows;) {
    const int64_t height = tile_rows(rows - i);
    meanwhile.few();
    causal_tile_of(height, read, i, out, out_step);
    i += height;
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
