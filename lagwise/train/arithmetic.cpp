#include "lagwise/train/arithmetic.h"

#include <torch/csrc/api/include/torch/version.h>

#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise {

Arithmetic arithmetic_here() {
  return {{"torch", TORCH_VERSION},
          {"products", ops::matrix_product_library()},
          {"blas", ops::blas_name()}};
}

std::string arithmetic_change(const Arithmetic& before, const Arithmetic& now) {
  std::string change;
  for (const auto& [role, name] : now) {
    const auto then = before.find(role);
    if (then == before.end() || then->second == name) continue;
    change += (change.empty() ? "" : "; ") + role + " " + name + " in place of " +
              then->second;
  }
  return change;
}

}  // namespace lagwise
