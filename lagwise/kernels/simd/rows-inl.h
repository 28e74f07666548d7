// Moving rows between the caller's memory and a pass's scratch: any steps,
// feature maps and row factors on the way in, the chain rule on the way out.
// What lies in scratch is dense and padded with zeros to whole panels, so that
// the arithmetic between has no edges.

#if defined(LAGWISE_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_ROWS_INL_H_
#undef LAGWISE_KERNELS_ROWS_INL_H_
#else
#define LAGWISE_KERNELS_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdlib>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "lagwise/kernels/feature_map-inl.h"
#include "lagwise/kernels/rows.h"
#include "lagwise/kernels/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE int64_t round_up(int64_t x, int64_t step) {
  return (x + step - 1) / step * step;
}

/// One panel of a row, whole and dense: to[j] = phi(from[j]) factor.
template <class T, class Map>
HWY_INLINE void load_panel(const Map& map, const T* from, T factor, T* to) {
  const hn::ScalableTag<T> tag;
  auto left = hn::Zero(tag), right = left;
  load_pair(tag, from, left, right);
  const auto f = hn::Set(tag, factor);
  store_pair(tag, hn::Mul(map.value(tag, left), f), hn::Mul(map.value(tag, right), f),
             to);
}

/// The first `count` lanes; all, or none, where there are not as many.
template <class Tag>
HWY_INLINE hn::Mask<Tag> first_lanes(Tag tag, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  return hn::FirstN(tag, static_cast<size_t>(std::clamp<int64_t>(count, 0, lanes)));
}

/// from[0, count), then zeros: nothing past `count` is touched.
template <class Tag, class T = hn::TFromD<Tag>>
HWY_INLINE hn::Vec<Tag> load_some(Tag tag, const T* from, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(tag))) return hn::LoadU(tag, from);
  if (count <= 0) return hn::Zero(tag);
#if HWY_MEM_OPS_MIGHT_FAULT
  T copy[hn::MaxLanes(tag)] = {};
  std::copy_n(from, count, copy);
  return hn::LoadU(tag, copy);
#else
  return hn::MaskedLoad(first_lanes(tag, count), tag, from);
#endif
}

/// to[0, count) = x, and nothing past it.
template <class Tag, class T = hn::TFromD<Tag>>
HWY_INLINE void store_some(Tag tag, hn::Vec<Tag> x, int64_t count, T* to) {
  if (count >= static_cast<int64_t>(hn::Lanes(tag))) return hn::StoreU(x, tag, to);
  if (count <= 0) return;
#if HWY_MEM_OPS_MIGHT_FAULT
  T copy[hn::MaxLanes(tag)];
  hn::StoreU(x, tag, copy);
  std::copy_n(copy, count, to);
#else
  hn::BlendedStore(x, first_lanes(tag, count), tag, to);
#endif
}

/// One panel of a row with any step and 0 <= cols <= width, then zeros, which phi(0)
/// need not be.
template <class T, class Map>
HWY_INLINE void load_ragged_panel(const Map& map, const T* from, int64_t step,
                                  int64_t cols, T factor, T* to) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  if (cols == 0) return store_pair(tag, hn::Zero(tag), hn::Zero(tag), to);
  if (step != 1) {
    for (int64_t j = 0; j < cols; ++j) to[j] = from[j * step];
    from = to;
  }
  const auto f = hn::Set(tag, factor);
  const auto left = hn::Mul(map.value(tag, load_some(tag, from, cols)), f);
  const auto right =
      hn::Mul(map.value(tag, load_some(tag, from + lanes, cols - lanes)), f);
  store_pair(tag, hn::IfThenElseZero(first_lanes(tag, cols), left),
             hn::IfThenElseZero(first_lanes(tag, cols - lanes), right), to);
}

/// Where a block of rows goes: element (i, j) to
/// to[i * row_step + j / width * panel_step + j % width].
template <class T>
struct Block {
  T* to;
  int64_t row_step;
  int64_t panel_step;
};

/// Rows [begin, begin + count) with the appended column, padded to whole panels.
template <class T>
HWY_NOINLINE void load_rows(const Rows<T>& rows, int64_t begin, int64_t count,
                            Block<T> block) {
  const int64_t width = panel_width<T>(), cols = rows.x.cols, step = rows.x.col_step;
  const int64_t padded = round_up(rows.width(), width);
  const int64_t whole = step == 1 ? cols / width * width : 0;
  with_map(rows.map, [&](const auto& map) HWY_ATTR {
    for (int64_t i = 0; i < count; ++i) {
      const T* from = rows.x.row(begin + i);
      const T factor = rows.scale.data ? rows.scale(begin + i, 0) : T{1};
      T* const row = block.to + i * block.row_step;
      T* to = row;
      int64_t j = 0;
      for (; j < whole; j += width, to += block.panel_step)
        load_panel(map, from + j, factor, to);
      for (; j < padded; j += width, to += block.panel_step)
        load_ragged_panel(map, from + j * step, step,
                          std::clamp<int64_t>(cols - j, 0, width), factor, to);
      if (rows.extra.data)
        row[cols / width * block.panel_step + cols % width] = rows.extra(begin + i, 0);
    }
  });
}

/// Whether the arithmetic may read these rows where they are: nothing to apply, no
/// edges, and not so far apart that a chunk falls into a few cache sets.
template <class T>
HWY_INLINE bool lie_ready(const Rows<T>& rows) {
  constexpr int64_t kNear = 1024 / sizeof(T);
  const MatView<const T>& x = rows.x;
  return rows.map.kind == FeatureMap::Kind::none && !rows.scale.data &&
         !rows.extra.data && x.col_step == 1 && x.cols % panel_width<T>() == 0 &&
         std::abs(x.row_step) <= kNear;
}

/// Asks for the rows of the next chunk, a few cache lines at a time between the
/// tiles of this one. The processor's own guess starts only with the first load,
/// and asking for all at once would stall it.
template <class T>
class Ahead {
 public:
  void add(MatView<const T> x, int64_t begin, int64_t end) {
    end = std::min(end, x.rows);
    if (x.col_step != 1 || begin >= end || x.cols == 0) return;
    x = x.slice(begin, end);
    if (x.row_step == x.cols) x = {x.data, 1, x.rows * x.cols, 0, 1};  // one long row
    parts_[count_++] = x;
  }
  void restart() { *this = {}; }

  HWY_INLINE void few() {
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int lines = 8; lines > 0 && part_ < count_; --lines) {
      const MatView<const T>& x = parts_[part_];
      hwy::Prefetch(x.data + row_ * x.row_step + col_);
      col_ += kLine;
      if (col_ < x.cols) continue;
      col_ = 0;
      if (++row_ < x.rows) continue;
      row_ = 0;
      ++part_;
    }
  }

 private:
  MatView<const T> parts_[6];
  int count_ = 0, part_ = 0;
  int64_t row_ = 0, col_ = 0;
};

#if HWY_TARGET != HWY_SCALAR
/// to[j][i] = from[i][j] for one 128-bit block a side: 4 x 4 of f32, 2 x 2 of f64.
template <class Tag, class T>
HWY_INLINE void transpose_block(Tag tag, const T* from, int64_t from_step, T* to,
                                int64_t to_step) {
  const auto r0 = hn::LoadU(tag, from);
  const auto r1 = hn::LoadU(tag, from + from_step);
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(hn::InterleaveLower(tag, r0, r1), tag, to);
    hn::StoreU(hn::InterleaveUpper(tag, r0, r1), tag, to + to_step);
  } else {
    const auto r2 = hn::LoadU(tag, from + 2 * from_step);
    const auto r3 = hn::LoadU(tag, from + 3 * from_step);
    const auto low02 = hn::InterleaveLower(tag, r0, r2);
    const auto low13 = hn::InterleaveLower(tag, r1, r3);
    const auto high02 = hn::InterleaveUpper(tag, r0, r2);
    const auto high13 = hn::InterleaveUpper(tag, r1, r3);
    hn::StoreU(hn::InterleaveLower(tag, low02, low13), tag, to);
    hn::StoreU(hn::InterleaveUpper(tag, low02, low13), tag, to + to_step);
    hn::StoreU(hn::InterleaveLower(tag, high02, high13), tag, to + 2 * to_step);
    hn::StoreU(hn::InterleaveUpper(tag, high02, high13), tag, to + 3 * to_step);
  }
}

#endif

#if HWY_MAX_BYTES == 64
/// Four vectors of f32: vector c holds column 4 b + c of four rows in its block b, if
/// they were just read; or rows of a transpose.
template <class V>
struct Four {
  V c0, c1, c2, c3;
};

/// Four rows of sixteen numbers: each block of 4 x 4 transposed in its place.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE Four<V> four_rows(Tag tag, const float* from, int64_t step) {
  const auto r0 = hn::LoadU(tag, from), r1 = hn::LoadU(tag, from + step);
  const auto r2 = hn::LoadU(tag, from + 2 * step), r3 = hn::LoadU(tag, from + 3 * step);
  const auto low02 = hn::InterleaveLower(tag, r0, r2);
  const auto low13 = hn::InterleaveLower(tag, r1, r3);
  const auto high02 = hn::InterleaveUpper(tag, r0, r2);
  const auto high13 = hn::InterleaveUpper(tag, r1, r3);
  return {hn::InterleaveLower(tag, low02, low13),
          hn::InterleaveUpper(tag, low02, low13),
          hn::InterleaveLower(tag, high02, high13),
          hn::InterleaveUpper(tag, high02, high13)};
}

/// Block b of the four vectors becomes vector b.
template <class Tag, class V>
HWY_INLINE Four<V> turn_blocks(Tag tag, V v0, V v1, V v2, V v3) {
  const auto even = hn::ConcatLowerLower(tag, v2, v0);  // v0.0 v0.1 v2.0 v2.1
  const auto odd = hn::ConcatLowerLower(tag, v3, v1);
  const auto even_up = hn::ConcatUpperUpper(tag, v2, v0);
  const auto odd_up = hn::ConcatUpperUpper(tag, v3, v1);
  return {hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even),
          hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)),
          hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_up), even_up),
          hn::OddEvenBlocks(odd_up, hn::SwapAdjacentBlocks(even_up))};
}

/// to[j][i] = from[i][j] for 16 x 16 numbers.
HWY_INLINE void transpose_sixteen(const float* from, int64_t from_step, float* to,
                                  int64_t to_step) {
  const hn::ScalableTag<float> tag;
  const auto g0 = four_rows(tag, from, from_step);
  const auto g1 = four_rows(tag, from + 4 * from_step, from_step);
  const auto g2 = four_rows(tag, from + 8 * from_step, from_step);
  const auto g3 = four_rows(tag, from + 12 * from_step, from_step);
  const auto store = [&](const auto& turned, int64_t c) HWY_ATTR {
    hn::StoreU(turned.c0, tag, to + c * to_step);
    hn::StoreU(turned.c1, tag, to + (4 + c) * to_step);
    hn::StoreU(turned.c2, tag, to + (8 + c) * to_step);
    hn::StoreU(turned.c3, tag, to + (12 + c) * to_step);
  };
  store(turn_blocks(tag, g0.c0, g1.c0, g2.c0, g3.c0), 0);
  store(turn_blocks(tag, g0.c1, g1.c1, g2.c1, g3.c1), 1);
  store(turn_blocks(tag, g0.c2, g1.c2, g2.c2, g3.c2), 2);
  store(turn_blocks(tag, g0.c3, g1.c3, g2.c3, g3.c3), 3);
}
#endif

/// x [count, padded] -> panels of its transpose, [count / width][padded][width].
/// Writes rows up to `cols`, rounded up to half a panel at most; count in whole panels.
template <class T>
HWY_NOINLINE void transpose_to_panels(const T* x, int64_t count, int64_t cols,
                                      int64_t padded, T* to) {
  const int64_t width = panel_width<T>();
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < cols; ++j)
      to[(i / width * padded + j) * width + i % width] = x[i * padded + j];
#else
#if HWY_MAX_BYTES == 64
  if constexpr (sizeof(T) == 4) {
    for (int64_t i = 0; i < count; i += 16) {
      T* const panel = to + i / width * padded * width + i % width;
      for (int64_t j = 0; j < cols; j += 16)
        transpose_sixteen(x + i * padded + j, padded, panel + j * width, width);
    }
    return;
  }
#endif
  constexpr int64_t kBlock = 16 / sizeof(T);  // of 128 bits
  const hn::CappedTag<T, kBlock> tag;
  for (int64_t i = 0; i < count; i += kBlock) {
    T* panel = to + i / width * padded * width + i % width;
    for (int64_t j = 0; j < cols; j += kBlock)
      transpose_block(tag, x + i * padded + j, padded, panel + j * width, width);
  }
#endif
}

/// moment[j] += phi(at[j]) result[j]
template <class T, class Map>
HWY_INLINE void gather_moment(const Map& map, const T* at, const T* result,
                              int64_t cols, double* moment) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  T phi[2 * hn::MaxLanes(tag)];
  hn::StoreU(map.value(tag, hn::LoadU(tag, at)), tag, phi);
  hn::StoreU(map.value(tag, hn::LoadU(tag, at + lanes)), tag, phi + lanes);
  for (int64_t j = 0; j < cols; ++j)
    moment[j] += static_cast<double>(phi[j]) * static_cast<double>(result[j]);
}

/// Whether the panel from column `first` on can be written as it is.
template <class T>
HWY_INLINE bool takes_whole(const Sink<T>& sink, int64_t first) {
  return sink.out.data && sink.out.col_step == 1 && !sink.at.data &&
         first + panel_width<T>() <= sink.out.cols;
}

/// out[i][first + j] = x[i][j] factor[i] for one panel without edges or chain rule.
template <class T>
HWY_INLINE void store_whole_panel(MatView<T> out, int64_t begin, int64_t count,
                                  int64_t first, const T* factor,
                                  const T* HWY_RESTRICT x) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t i = 0; i < count; ++i, x += 2 * lanes) {
    const auto f = hn::Set(tag, factor[i]);
    T* to = out.row(begin + i) + first;
    hn::StoreU(hn::Mul(hn::LoadU(tag, x), f), tag, to);
    hn::StoreU(hn::Mul(hn::LoadU(tag, x + lanes), f), tag, to + lanes);
  }
}

/// out[i][first + j] = x[i][j] factor[i] phi'(at[i][first + j]) for one panel.
template <class T>
HWY_NOINLINE void store_panel(const Sink<T>& sink, int64_t begin, int64_t count,
                              int64_t first, const T* factor, T* HWY_RESTRICT x) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const int64_t all = sink.out.data ? sink.out.cols : sink.at.cols;
  const int64_t width = 2 * lanes, cols = std::min(width, all - first);
  if (takes_whole(sink, first))
    return store_whole_panel(sink.out, begin, count, first, factor, x);
  T copy[2 * hn::MaxLanes(tag)] = {};
  with_map(sink.map, [&](const auto& map) HWY_ATTR {
    for (int64_t i = begin; i < begin + count; ++i, x += width, ++factor) {
      const auto f = hn::Set(tag, *factor);
      auto left = hn::Mul(hn::LoadU(tag, x), f);
      auto right = hn::Mul(hn::LoadU(tag, x + lanes), f);
      if (sink.at.data) {
        const T* at = sink.at.row(i) + first * sink.at.col_step;
        if (sink.at.col_step != 1) {
          for (int64_t j = 0; j < cols; ++j) copy[j] = at[j * sink.at.col_step];
          at = copy;
        } else if (cols < width) {
          store_pair(tag, load_some(tag, at, cols),
                     load_some(tag, at + lanes, cols - lanes), copy);
          at = copy;
        }
        if (sink.moment) gather_moment(map, at, x, cols, sink.moment + first);
        left = hn::Mul(left, map.slope(tag, hn::LoadU(tag, at)));
        right = hn::Mul(right, map.slope(tag, hn::LoadU(tag, at + lanes)));
      }
      if (!sink.out.data) continue;
      T* const row = sink.out.row(i) + first * sink.out.col_step;
      if (sink.out.col_step == 1) {
        store_some(tag, left, cols, row);
        store_some(tag, right, cols - lanes, row + lanes);
        continue;
      }
      store_pair(tag, left, right, x);
      for (int64_t j = 0; j < cols; ++j) row[j * sink.out.col_step] = x[j];
    }
  });
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
