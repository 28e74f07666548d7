#include "lagwise/ops/torch/blas_threads.h"

#include <dlfcn.h>

#include <array>

namespace lagwise::ops {
namespace {

/// A function of the BLAS torch was loaded with, if it has one of that name.
template <class Function>
Function of_blas(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

/// From "Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build ...".
std::string mkl_version(const std::string& text) {
  const std::string mark = "Version ";
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const size_t begin = at + mark.size();
  return " " + text.substr(begin, text.find_first_of("- ", begin) - begin);
}

}  // namespace

int blas_threads() {
  static const auto get = of_blas<int (*)()>("openblas_get_num_threads");
  return get ? get() : 1;
}

void set_blas_threads(int threads) {
  static const auto set = of_blas<void (*)(int)>("openblas_set_num_threads");
  if (set) set(threads);
}

bool has_fast_blas() {
  return of_blas<void*>("openblas_get_config") ||
         of_blas<void*>("MKL_Get_Version_String");
}

std::string blas_name() {
  if (const auto config = of_blas<char* (*)()>("openblas_get_config")) return config();
  if (const auto version = of_blas<void (*)(char*, int)>("MKL_Get_Version_String")) {
    std::array<char, 256> text{};
    version(text.data(), static_cast<int>(text.size()) - 1);
    return "MKL" + mkl_version(text.data());
  }
  return "not OpenBLAS (torch baselines are slow; install libopenblas0-pthread)";
}

}  // namespace lagwise::ops
