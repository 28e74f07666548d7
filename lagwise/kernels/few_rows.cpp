#include "lagwise/kernels/few_rows.h"

#include <algorithm>
#include <bit>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/few_rows.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, kPanelOutputs>;
using V = hn::Vec<Tag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
/// Vectors in the width of a panel: 1 with AVX-512, 2 with AVX2.
constexpr int64_t kParts = kPanelOutputs / kLanes;
/// Rows of a tile of two vectors: as many as there are registers for.
constexpr int64_t kTileRows = kLanes >= 16 ? 8 : kLanes >= 8 ? 6 : 4;

HWY_INLINE V load(const float* from) { return hn::LoadU(Tag(), from); }

/// bf16 is the upper half of a float.
HWY_INLINE V load(const uint16_t* from) {
  const hn::Rebind<uint16_t, Tag> half;
  const hn::Rebind<uint32_t, Tag> whole;
  return hn::BitCast(Tag(),
                     hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(half, from))));
}

HWY_INLINE V load(const int8_t* from) {
  const hn::Rebind<int8_t, Tag> small;
  const hn::Rebind<int32_t, Tag> whole;
  return hn::ConvertTo(Tag(), hn::PromoteTo(whole, hn::LoadU(small, from)));
}

/// One vector of outputs, a part of a panel.
template <class W>
struct Outputs {
  const W* weights;     // of column 0; the next column is kPanelOutputs on
  const float* scales;  // of the first block; the next is kPanelOutputs on
};

/// Vector number `unit` of the matrix, counted over panels and their parts.
template <class W>
HWY_INLINE Outputs<W> outputs_at(const PanelWeights& w, int64_t unit) {
  const int64_t panel = unit / kParts, lane = unit % kParts * kLanes;
  const float* const scales =
      w.scales ? w.scales + panel * w.blocks() * kPanelOutputs + lane : nullptr;
  return {static_cast<const W*>(w.numbers) + panel * w.cols * kPanelOutputs + lane,
          scales};
}

/// sum + block, where the weights of the block are in units of its scale.
template <class W>
HWY_INLINE V add_block(V sum, V block, const float* scales, int64_t index) {
  if constexpr (sizeof(W) == 1)
    return hn::MulAdd(block, hn::LoadU(Tag(), scales + index * kPanelOutputs), sum);
  else
    return hn::Add(sum, block);
}

/// What the outputs from `column` on begin with; `y` is their place in a row.
HWY_INLINE V start_of(const FewRowsStart& start, int64_t column, const float* y) {
  const auto bias =
      start.bias ? hn::LoadU(Tag(), start.bias + column) : hn::Zero(Tag());
  return start.add ? hn::Add(hn::LoadU(Tag(), y), bias) : bias;
}

/// Four vectors of outputs of one row, from `column` on; the first `count` are wanted.
template <class W>
HWY_NOINLINE void one_row(const PanelWeights& w, const FewRowsStart& start,
                          const float* HWY_RESTRICT x, Outputs<W> o0, Outputs<W> o1,
                          Outputs<W> o2, Outputs<W> o3, float* HWY_RESTRICT y,
                          int64_t column, int64_t count) {
  const auto begin = [&](int64_t i) HWY_ATTR {
    const int64_t at = std::min(i, count - 1) * kLanes;
    return start_of(start, column + at, y + at);
  };
  auto sum0 = begin(0), sum1 = begin(1), sum2 = begin(2), sum3 = begin(3);
  for (int64_t first = 0, block = 0; first < w.cols; first += kScaledColumns, ++block) {
    const int64_t end = std::min(w.cols, first + kScaledColumns);
    auto s0 = hn::Zero(Tag()), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t c = first; c < end; ++c) {
      const auto at = hn::Set(Tag(), x[c]);
      const int64_t place = c * kPanelOutputs;
      s0 = hn::MulAdd(load(o0.weights + place), at, s0);
      s1 = hn::MulAdd(load(o1.weights + place), at, s1);
      s2 = hn::MulAdd(load(o2.weights + place), at, s2);
      s3 = hn::MulAdd(load(o3.weights + place), at, s3);
    }
    sum0 = add_block<W>(sum0, s0, o0.scales, block);
    sum1 = add_block<W>(sum1, s1, o1.scales, block);
    sum2 = add_block<W>(sum2, s2, o2.scales, block);
    sum3 = add_block<W>(sum3, s3, o3.scales, block);
  }
  hn::StoreU(sum0, Tag(), y);
  if (count > 1) hn::StoreU(sum1, Tag(), y + kLanes);
  if (count > 2) hn::StoreU(sum2, Tag(), y + 2 * kLanes);
  if (count > 3) hn::StoreU(sum3, Tag(), y + 3 * kLanes);
}

/// Where the rows of a tile are read and written; rows past the last repeat it.
struct TileRows {
  const float *x0, *x1, *x2, *x3, *x4, *x5, *x6, *x7;
  int64_t count;
  MatView<float> y;
  int64_t first;

  TileRows(MatView<const float> x, MatView<float> to, int64_t begin, int64_t most)
      : count(std::min(most, x.rows - begin)), y(to), first(begin) {
    const auto row = [&](int64_t i) { return x.row(std::min(begin + i, x.rows - 1)); };
    x0 = row(0), x1 = row(1), x2 = row(2), x3 = row(3);
    x4 = row(4), x5 = row(5), x6 = row(6), x7 = row(7);
  }
};

/// What a tile asks memory for while it computes: its share of the weights that come
/// next, some bytes with every column. Else memory would rest while weights that are
/// there meet one row after the other.
struct Ahead {
  const char* from;
  int64_t step;

  HWY_INLINE void ask(int64_t column) const {
    __builtin_prefetch(from + step * column, 0, 2);
  }
};

/// Two vectors of outputs of one row.
struct Two {
  V a, b;
};

HWY_INLINE void gather(V wa, V wb, float x, Two& sum) {
  const auto at = hn::Set(Tag(), x);
  sum.a = hn::MulAdd(wa, at, sum.a);
  sum.b = hn::MulAdd(wb, at, sum.b);
}

/// Where a tile puts its sums over one block of columns.
template <class W>
struct Kept {
  const FewRowsStart& start;
  const TileRows& rows;
  const float *scales_a, *scales_b;
  int64_t column, block;
  bool second;
};

/// Adds the sums of one row to what y holds from the blocks before, or to its start.
template <class W>
HWY_INLINE void keep(const Kept<W>& at, int64_t i, Two s) {
  if (i >= at.rows.count) return;
  float* const to = at.rows.y.row(at.rows.first + i) + at.column;
  const auto before_a =
      at.block > 0 ? hn::LoadU(Tag(), to) : start_of(at.start, at.column, to);
  hn::StoreU(add_block<W>(before_a, s.a, at.scales_a, at.block), Tag(), to);
  if (!at.second) return;
  const auto before_b = at.block > 0
                            ? hn::LoadU(Tag(), to + kLanes)
                            : start_of(at.start, at.column + kLanes, to + kLanes);
  hn::StoreU(add_block<W>(before_b, s.b, at.scales_b, at.block), Tag(), to + kLanes);
}

/// Two vectors of outputs of up to kRows rows; y holds the sums between blocks.
template <class W, int64_t kRows>
HWY_NOINLINE void tile(const PanelWeights& w, const FewRowsStart& start,
                       const TileRows& rows, Outputs<W> oa, Outputs<W> ob,
                       int64_t column, bool second, Ahead ahead) {
  for (int64_t first = 0, block = 0; first < w.cols; first += kScaledColumns, ++block) {
    const int64_t end = std::min(w.cols, first + kScaledColumns);
    const auto zero = hn::Zero(Tag());
    Two s0{zero, zero}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (int64_t c = first; c < end; ++c) {
      const auto wa = load(oa.weights + c * kPanelOutputs);
      const auto wb = load(ob.weights + c * kPanelOutputs);
      ahead.ask(c);
      gather(wa, wb, rows.x0[c], s0), gather(wa, wb, rows.x1[c], s1);
      gather(wa, wb, rows.x2[c], s2), gather(wa, wb, rows.x3[c], s3);
      if constexpr (kRows > 4)
        gather(wa, wb, rows.x4[c], s4), gather(wa, wb, rows.x5[c], s5);
      if constexpr (kRows > 6)
        gather(wa, wb, rows.x6[c], s6), gather(wa, wb, rows.x7[c], s7);
    }
    const Kept<W> kept{start, rows, oa.scales, ob.scales, column, block, second};
    keep(kept, 0, s0), keep(kept, 1, s1), keep(kept, 2, s2), keep(kept, 3, s3);
    if constexpr (kRows > 4) keep(kept, 4, s4), keep(kept, 5, s5);
    if constexpr (kRows > 6) keep(kept, 6, s6), keep(kept, 7, s7);
  }
}

/// Two vectors of outputs of all rows, tile by tile.
template <class W>
void several_rows(const PanelWeights& w, const FewRowsStart& start, Outputs<W> oa,
                  Outputs<W> ob, MatView<const float> x, MatView<float> y,
                  int64_t column, bool second) {
  const int64_t column_bytes = 2 * kLanes * static_cast<int64_t>(sizeof(W));
  const int64_t tiles = (x.rows + kTileRows - 1) / kTileRows;
  const W* const next = (kParts == 1 ? ob : oa).weights + w.cols * kPanelOutputs;
  Ahead ahead{reinterpret_cast<const char*>(next), (column_bytes + tiles - 1) / tiles};
  for (int64_t i = 0; i < x.rows;) {
    // Tiles of four rows where that leaves fewer of their places empty.
    const int64_t left = x.rows - i;
    const bool four = left <= 4 || (kTileRows == 6 && (left == 7 || left == 8));
    const TileRows rows(x, y, i, four ? 4 : kTileRows);
    if (four)
      tile<W, 4>(w, start, rows, oa, ob, column, second, ahead);
    else
      tile<W, kTileRows>(w, start, rows, oa, ob, column, second, ahead);
    ahead.from += ahead.step * w.cols;
    i += rows.count;
  }
}

template <class W>
void product(const PanelWeights& w, int64_t begin, int64_t end, MatView<const float> x,
             MatView<float> y, const FewRowsStart& start) {
  const auto at = [&](int64_t unit)
                      HWY_ATTR { return outputs_at<W>(w, std::min(unit, end - 1)); };
  if (x.rows == 1) {
    for (int64_t u = begin; u < end; u += 4)
      one_row<W>(w, start, x.data, at(u), at(u + 1), at(u + 2), at(u + 3),
                 y.data + u * kLanes, u * kLanes, std::min<int64_t>(4, end - u));
    return;
  }
  for (int64_t u = begin; u < end; u += 2)
    several_rows<W>(w, start, at(u), at(u + 1), x, y, u * kLanes, u + 1 < end);
}

void few_rows_of(const PanelWeights& w, int64_t first_panel, int64_t end_panel,
                 MatView<const float> x, MatView<float> y, const FewRowsStart& start) {
  const int64_t begin = first_panel * kParts, end = end_panel * kParts;
  if (x.rows == 0 || begin >= end) return;
  switch (w.type) {
    case WeightType::f32:
      return product<float>(w, begin, end, x, y, start);
    case WeightType::bf16:
      return product<uint16_t>(w, begin, end, x, y, start);
    case WeightType::int8:
      return product<int8_t>(w, begin, end, x, y, start);
  }
}

}  // namespace
}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(few_rows_of);

void few_rows(const PanelWeights& w, int64_t first_panel, int64_t end_panel,
              MatView<const float> x, MatView<float> y,
              const FewRowsStart& start) noexcept {
  HWY_DYNAMIC_DISPATCH(few_rows_of)(w, first_panel, end_panel, x, y, start);
}

void unpack_row(const PanelWeights& w, int64_t output, float* to) noexcept {
  const int64_t panel = output / kPanelOutputs, lane = output % kPanelOutputs;
  for (int64_t c = 0; c < w.cols; ++c) {
    const int64_t place = (panel * w.cols + c) * kPanelOutputs + lane;
    if (w.type == WeightType::f32) {
      to[c] = static_cast<const float*>(w.numbers)[place];
    } else if (w.type == WeightType::bf16) {
      const uint32_t upper = static_cast<const uint16_t*>(w.numbers)[place];
      to[c] = std::bit_cast<float>(upper << 16);
    } else {
      const int64_t block = panel * w.blocks() + c / kScaledColumns;
      to[c] = static_cast<float>(static_cast<const int8_t*>(w.numbers)[place]) *
              w.scales[block * kPanelOutputs + lane];
    }
  }
}

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
