#include "lagwise/ops/torch/blas_threads.h"

#include <dlfcn.h>

namespace lagwise::ops {
namespace {

/// A symbol of OpenBLAS, if it is the BLAS torch was loaded with.
template <class Function>
Function openblas(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

int blas_threads() {
  static const auto get = openblas<int (*)()>("openblas_get_num_threads");
  return get ? get() : 1;
}

void set_blas_threads(int threads) {
  static const auto set = openblas<void (*)(int)>("openblas_set_num_threads");
  if (set) set(threads);
}

bool has_openblas() {
  return openblas<void (*)(int)>("openblas_set_num_threads") != nullptr;
}

std::string blas_name() {
  if (const auto config = openblas<char* (*)()>("openblas_get_config")) return config();
  return "not OpenBLAS (torch baselines are slow; install libopenblas0-pthread)";
}

}  // namespace lagwise::ops
