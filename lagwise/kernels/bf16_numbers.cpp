#include "lagwise/kernels/bf16_numbers.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/bf16_numbers.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class Tag>
HWY_INLINE hn::Vec<Tag> widened(Tag tag, const uint16_t* from) {
  const hn::Rebind<uint16_t, Tag> halves;
  const hn::Rebind<uint32_t, Tag> bits;
  return hn::BitCast(tag,
                     hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(halves, from))));
}

/// Adding just below half of the last place that stays, and one more where that place is
/// odd, carries into it as rounding does.
template <class Tag>
HWY_INLINE void round_vector(Tag tag, const float* from, uint16_t* to) {
  const hn::Rebind<uint16_t, Tag> halves;
  const hn::Rebind<int32_t, Tag> words;
  const hn::Rebind<uint32_t, Tag> bits;
  const auto x = hn::LoadU(tag, from);
  const auto b = hn::BitCast(bits, x);
  const auto odd = hn::And(hn::ShiftRight<16>(b), hn::Set(bits, 1u));
  const auto near =
      hn::ShiftRight<16>(hn::Add(b, hn::Add(odd, hn::Set(bits, 0x7fffu))));
  const auto nan = hn::BitCast(bits, hn::VecFromMask(tag, hn::IsNaN(x)));
  const auto rounded =
      hn::IfThenElse(hn::MaskFromVec(nan), hn::Set(bits, 0x7fc0u), near);
  hn::StoreU(hn::DemoteTo(halves, hn::BitCast(words, rounded)), halves, to);
}

}  // namespace

void round_all(const float* from, int64_t count, uint16_t* to) {
  each_vector<float>(count, [&](auto tag, int64_t j)
                                HWY_ATTR { round_vector(tag, from + j, to + j); });
}

void widen_all(const uint16_t* from, int64_t count, float* to) {
  each_vector<float>(count, [&](auto tag, int64_t j) HWY_ATTR {
    hn::StoreU(widened(tag, from + j), tag, to + j);
  });
}

void sum_rows(MatView<const uint16_t> x, bool add, float* to) {
  if (!add) std::fill_n(to, x.cols, 0.0f);
  // Four rows at a time: sums are read and written a fourth as often.
  int64_t i = 0;
  for (; i + 4 <= x.rows; i += 4)
    each_vector<float>(x.cols, [&](auto tag, int64_t j) HWY_ATTR {
      auto sum = hn::Add(hn::LoadU(tag, to + j), widened(tag, x.row(i) + j));
      sum = hn::Add(sum, widened(tag, x.row(i + 1) + j));
      sum = hn::Add(sum, widened(tag, x.row(i + 2) + j));
      hn::StoreU(hn::Add(sum, widened(tag, x.row(i + 3) + j)), tag, to + j);
    });
  for (; i < x.rows; ++i)
    each_vector<float>(x.cols, [&](auto tag, int64_t j) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(tag, to + j), widened(tag, x.row(i) + j)), tag,
                 to + j);
    });
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(round_all);
HWY_EXPORT(widen_all);
HWY_EXPORT(sum_rows);

void round_to_bf16(const float* from, int64_t count, uint16_t* to) noexcept {
  HWY_DYNAMIC_DISPATCH(round_all)(from, count, to);
}
void widen_bf16(const uint16_t* from, int64_t count, float* to) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_all)(from, count, to);
}
void sum_bf16_rows(MatView<const uint16_t> x, bool add, float* to) noexcept {
  HWY_DYNAMIC_DISPATCH(sum_rows)(x, add, to);
}

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
