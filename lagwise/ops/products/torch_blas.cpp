// Matrix products by MKL, which is inside the libtorch_cpu of torch 2: see
// docs/decisions for why it is not oneDNN there.

#include <c10/util/Exception.h>

#include "lagwise/ops/products/by_torch.h"
#include "lagwise/ops/products/products.h"
#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise::ops::products {

void multiply_f32(MatView<const float> a, MatView<const float> b, bool add,
                  MatView<float> c) {
  multiply_by_torch(a, b, add, c);
}

/// torch offers no product of bf16 factors that keeps its sums in f32.
bool has_bf16_instructions() { return false; }
void multiply_bf16(MatView<const c10::BFloat16>, MatView<const c10::BFloat16>, bool,
                   MatView<float>) {
  TORCH_CHECK(false, "matrix_product: this build multiplies bf16 by widening alone");
}

std::string library() { return blas_name(); }

}  // namespace lagwise::ops::products
