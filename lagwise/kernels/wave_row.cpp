#include "lagwise/kernels/wave_row.h"

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/wave_row.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/each_vector-inl.h"
#include "lagwise/kernels/sine_wave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// As waves_at of sine_wave-inl.h: the top 24 bits of f times a whole position are
/// exact, so that whole turns come off without any error.
void wave_row_of(const double* frequency, const double* phase, int64_t count,
                 double position, float* cosine, float* sine) {
  each_vector<double>(count, [&](auto wide, int64_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(wide)> tag;
    const hn::RebindToUnsigned<decltype(wide)> bits;
    const auto top = hn::BitCast(wide, hn::Set(bits, ~uint64_t{0} << 29));
    const auto n = hn::Set(wide, position), f = hn::LoadU(wide, frequency + i);
    const auto high = hn::And(f, top), turns = hn::Mul(high, n);
    auto angle = hn::MulAdd(hn::Sub(f, high), n, hn::Sub(turns, hn::Round(turns)));
    if (phase != nullptr) angle = hn::Add(angle, hn::LoadU(wide, phase + i));
    const auto quarters = hn::Round(hn::Mul(angle, hn::Set(wide, 4.0)));
    const auto rest = hn::NegMulAdd(quarters, hn::Set(wide, 0.25), angle);
    auto c = hn::Zero(tag), s = c;
    cos_sin<float>(tag, hn::DemoteTo(tag, rest), hn::DemoteTo(tag, quarters), c, s);
    hn::StoreU(c, tag, cosine + i);
    hn::StoreU(s, tag, sine + i);
  });
}

}  // namespace
}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(wave_row_of);

void wave_row(const double* frequency, const double* phase, int64_t count,
              double position, float* cosine, float* sine) noexcept {
  HWY_DYNAMIC_DISPATCH(wave_row_of)(frequency, phase, count, position, cosine, sine);
}

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
