#pragma once

/// How a kernel file offers its functions.
///
/// Highway compiles the body of such a file once per instruction set and chooses one
/// when the program runs. A public function template, causal_linear<T> say, therefore
/// has one implementation per instruction set. Each instruction set lists its
/// implementations in one table per number type, inside its own namespace:
///
///     template <class T>
///     constexpr Kernels<causal_linear<T>, absorb<T>> kKernels =
///     {{causal_linear_of<T>},
///                                                                {absorb_of<T>}};
///     LAGWISE_KERNELS
///
/// and behind HWY_ONCE, where public functions are defined, each calls the chosen one:
///
///     LAGWISE_CHOOSE
///     template <class T>
///     void absorb(const Rows<T>& k, ...) noexcept { chosen<T, absorb<T>>(k, ...); }
///     LAGWISE_INSTANTIATE(absorb)
#include <bit>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

namespace lagwise::kernels {

/// Highway's tables of the same function for every instruction set have entries by this
/// number. AVX-512's panels of 32 numbers would be half empty where the rows of a head
/// have 16 or fewer, and its chunks of 32 rows twice as long as they need to be: such
/// heads are faster with AVX2, which every CPU with AVX-512 has.
inline size_t table_index_of_narrow_rows() {
  const size_t chosen = hwy::GetChosenTarget().GetIndex();
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX2) && (HWY_TARGETS & (HWY_AVX3 | HWY_AVX3_DL))
  const auto index = [](int64_t target) {
    const int64_t mask = HWY_CHOSEN_TARGET_SHIFT(target);
    return static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(mask)));
  };
  if (chosen == index(HWY_AVX3) || chosen == index(HWY_AVX3_DL)) return index(HWY_AVX2);
#endif
  return chosen;
}

/// Whether a row of so many numbers fills no more than one vector of AVX-512.
template <class T>
constexpr bool is_narrow(int64_t width) {
  return width * static_cast<int64_t>(sizeof(T)) <= 64;
}

/// The implementation of one public function: the same type, so that a table of another
/// signature does not compile.
template <auto kPublic>
struct Kernel {
  decltype(kPublic) of;
};

template <auto... kPublic>
struct Kernels : Kernel<kPublic>... {};

}  // namespace lagwise::kernels

/// Inside HWY_NAMESPACE, after kKernels: what HWY_EXPORT can name.
#define LAGWISE_KERNELS                                   \
  namespace {                                             \
  const auto* kernels_f32() { return &kKernels<float>; }  \
  const auto* kernels_f64() { return &kKernels<double>; } \
  }

/// The entry of a table for narrow rows. With a single instruction set there is no table.
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define LAGWISE_NARROW_DISPATCH(name) HWY_DYNAMIC_DISPATCH(name)
#else
#define LAGWISE_NARROW_DISPATCH(name) \
  (*(HWY_DISPATCH_TABLE(name)[table_index_of_narrow_rows()]))
#endif

/// Behind HWY_ONCE, beside LAGWISE_CHOOSE: chosen_by_width<T, f<T>>(widest, args) does the
/// same for rows of at most `widest` numbers.
#define LAGWISE_CHOOSE_BY_WIDTH                                                \
  template <class T, auto kPublic, class... Args>                              \
  static auto chosen_by_width(int64_t widest, Args&&... args) {                \
    if (!is_narrow<T>(widest)) return chosen<T, kPublic>(args...);             \
    if constexpr (sizeof(T) == 4) {                                            \
      const Kernel<kPublic>& kernel = *LAGWISE_NARROW_DISPATCH(kernels_f32)(); \
      return kernel.of(args...);                                               \
    } else {                                                                   \
      const Kernel<kPublic>& kernel = *LAGWISE_NARROW_DISPATCH(kernels_f64)(); \
      return kernel.of(args...);                                               \
    }                                                                          \
  }

/// Behind HWY_ONCE: chosen<T, f<T>>(args) calls f's implementation for this machine.
#define LAGWISE_CHOOSE                                                      \
  HWY_EXPORT(kernels_f32);                                                  \
  HWY_EXPORT(kernels_f64);                                                  \
  template <class T, auto kPublic, class... Args>                           \
  static auto chosen(Args&&... args) {                                      \
    if constexpr (sizeof(T) == 4) {                                         \
      const Kernel<kPublic>& kernel = *HWY_DYNAMIC_DISPATCH(kernels_f32)(); \
      return kernel.of(args...);                                            \
    } else {                                                                \
      const Kernel<kPublic>& kernel = *HWY_DYNAMIC_DISPATCH(kernels_f64)(); \
      return kernel.of(args...);                                            \
    }                                                                       \
  }

/// The public function for both number types.
#define LAGWISE_INSTANTIATE(name)             \
  template decltype(name<float>) name<float>; \
  template decltype(name<double>) name<double>;
