#include "lagwise/kernels/row_product.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/row_product.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Two rows of x and where their products go; the second may be the first again.
struct Pair {
  const float *x0, *x1;
  float *y0, *y1;
};

/// Columns [j, j + 4 vectors) of two rows.
template <class Tag>
HWY_INLINE void four_vectors(Tag tag, const Pair& rows, MatView<const float> b,
                             bool add, int64_t j) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto start = [&](const float* y, int64_t k) HWY_ATTR {
    return add ? hn::LoadU(tag, y + j + k * lanes) : hn::Zero(tag);
  };
  auto p0 = start(rows.y0, 0), p1 = start(rows.y0, 1), p2 = start(rows.y0, 2);
  auto p3 = start(rows.y0, 3), r0 = start(rows.y1, 0), r1 = start(rows.y1, 1);
  auto r2 = start(rows.y1, 2), r3 = start(rows.y1, 3);
  for (int64_t f = 0; f < b.rows; ++f) {
    const float* HWY_RESTRICT from = b.data + f * b.row_step + j;
    const auto at0 = hn::Set(tag, rows.x0[f]), at1 = hn::Set(tag, rows.x1[f]);
    const auto b0 = hn::LoadU(tag, from), b1 = hn::LoadU(tag, from + lanes);
    const auto b2 = hn::LoadU(tag, from + 2 * lanes);
    const auto b3 = hn::LoadU(tag, from + 3 * lanes);
    p0 = hn::MulAdd(b0, at0, p0), p1 = hn::MulAdd(b1, at0, p1);
    p2 = hn::MulAdd(b2, at0, p2), p3 = hn::MulAdd(b3, at0, p3);
    r0 = hn::MulAdd(b0, at1, r0), r1 = hn::MulAdd(b1, at1, r1);
    r2 = hn::MulAdd(b2, at1, r2), r3 = hn::MulAdd(b3, at1, r3);
  }
  float *const to0 = rows.y0 + j, *const to1 = rows.y1 + j;
  hn::StoreU(p0, tag, to0), hn::StoreU(p1, tag, to0 + lanes);
  hn::StoreU(p2, tag, to0 + 2 * lanes), hn::StoreU(p3, tag, to0 + 3 * lanes);
  hn::StoreU(r0, tag, to1), hn::StoreU(r1, tag, to1 + lanes);
  hn::StoreU(r2, tag, to1 + 2 * lanes), hn::StoreU(r3, tag, to1 + 3 * lanes);
}

template <class Tag>
HWY_INLINE void one_vector(Tag tag, const Pair& rows, MatView<const float> b, bool add,
                           int64_t j) {
  auto p = add ? hn::LoadU(tag, rows.y0 + j) : hn::Zero(tag);
  auto r = add ? hn::LoadU(tag, rows.y1 + j) : hn::Zero(tag);
  for (int64_t f = 0; f < b.rows; ++f) {
    const auto v = hn::LoadU(tag, b.data + f * b.row_step + j);
    p = hn::MulAdd(v, hn::Set(tag, rows.x0[f]), p);
    r = hn::MulAdd(v, hn::Set(tag, rows.x1[f]), r);
  }
  hn::StoreU(p, tag, rows.y0 + j), hn::StoreU(r, tag, rows.y1 + j);
}

void row_product_of(MatView<const float> x, MatView<const float> b, bool add,
                    MatView<float> y) {
  const hn::ScalableTag<float> tag;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t i = 0; i < x.rows; i += 2) {
    const int64_t next = std::min(i + 1, x.rows - 1);
    const Pair rows{x.row(i), x.row(next), y.row(i), y.row(next)};
    int64_t j = 0;
    for (; j + 4 * lanes <= b.cols; j += 4 * lanes) four_vectors(tag, rows, b, add, j);
    for (; j + lanes <= b.cols; j += lanes) one_vector(tag, rows, b, add, j);
    for (; j < b.cols; ++j) one_vector(one, rows, b, add, j);
  }
}

}  // namespace
}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(row_product_of);

void row_product(MatView<const float> x, MatView<const float> b, bool add,
                 MatView<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(row_product_of)(x, b, add, y);
}

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
