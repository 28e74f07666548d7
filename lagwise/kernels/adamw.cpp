#include "lagwise/kernels/adamw.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/adamw.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<float>;

/// As many parameters as a vector holds.
HWY_INLINE void update_vector(const AdamwRates& r, const float* HWY_RESTRICT g_at,
                              float* HWY_RESTRICT m_at, float* HWY_RESTRICT v_at,
                              float* HWY_RESTRICT p_at) {
  const Lanes lanes;
  const auto g = hn::Mul(hn::LoadU(lanes, g_at), hn::Set(lanes, r.grad_scale));
  const auto m = hn::MulAdd(hn::Set(lanes, 1 - r.beta1), g,
                            hn::Mul(hn::Set(lanes, r.beta1), hn::LoadU(lanes, m_at)));
  const auto v = hn::MulAdd(hn::Set(lanes, 1 - r.beta2), hn::Mul(g, g),
                            hn::Mul(hn::Set(lanes, r.beta2), hn::LoadU(lanes, v_at)));
  const auto root =
      hn::MulAdd(hn::Sqrt(v), hn::Set(lanes, r.root_scale), hn::Set(lanes, r.eps));
  const auto move = hn::Div(hn::Mul(hn::Set(lanes, r.rate), m), root);
  const auto p = hn::MulSub(hn::Set(lanes, r.shrink), hn::LoadU(lanes, p_at), move);
  hn::StoreU(m, lanes, m_at);
  hn::StoreU(v, lanes, v_at);
  hn::StoreU(p, lanes, p_at);
}

}  // namespace

void adamw_f32(const AdamwRates& rates, const float* g, float* m, float* v, float* p,
               int64_t count) {
  const auto width = static_cast<int64_t>(hn::Lanes(Lanes()));
  int64_t i = 0;
  for (; i + width <= count; i += width)
    update_vector(rates, g + i, m + i, v + i, p + i);
  // The rest through a vector as well, so that no bit depends on where a call ends.
  float part[4][hn::MaxLanes(Lanes())] = {};
  const int64_t rest = count - i;
  if (rest == 0) return;
  std::copy_n(g + i, rest, part[0]);
  std::copy_n(m + i, rest, part[1]);
  std::copy_n(v + i, rest, part[2]);
  std::copy_n(p + i, rest, part[3]);
  update_vector(rates, part[0], part[1], part[2], part[3]);
  std::copy_n(part[1], rest, m + i);
  std::copy_n(part[2], rest, v + i);
  std::copy_n(part[3], rest, p + i);
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(adamw_f32);

void adamw(const AdamwRates& rates, const float* g, float* m, float* v, float* p,
           int64_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(adamw_f32)(rates, g, m, v, p, count);
}

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
