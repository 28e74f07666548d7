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
namespace lagwise::kernels {

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
