// What Highway's library says about the processor, for programs that stand alone: where
// there is no libhwy. Highway's headers ask these two functions, once, which of the
// compiled instruction sets to take.

#include <hwy/targets.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hwy {
namespace {

#if HWY_ARCH_X86
/// clang 14 does not know this one by name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

int64_t usable_targets() {
  int64_t targets = HWY_STATIC_TARGET;
  const auto has_sse4 = [] {
    return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
           __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  };
  const auto has_avx2 = [] {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           has_f16c();
  };
  const auto has_avx3 = [] {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd");
  };
  __builtin_cpu_init();
  if (__builtin_cpu_supports("ssse3")) targets |= HWY_SSSE3;
  if (has_sse4()) targets |= HWY_SSE4;
  if (has_sse4() && has_avx2()) targets |= HWY_AVX2;
  if (has_sse4() && has_avx2() && has_avx3()) targets |= HWY_AVX3;
  return targets;
}
#else
int64_t usable_targets() { return HWY_STATIC_TARGET; }
#endif

}  // namespace

int64_t SupportedTargets() {
  static const int64_t targets = usable_targets();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
