#pragma once

#include <c10/util/BFloat16.h>

#include <string>

#include "lagwise/core/mat_view.h"

/// What ops/matrix_product.h asks of those who multiply. CMake links one file that
/// defines it: onednn.cpp with torch 1.13, torch_blas.cpp with torch 2. (With either,
/// products/tiles.h multiplies bf16 on CPUs that have AMX.)
namespace lagwise::ops::products {

/// c = a b, or c += a b, by one thread, where no size is 0.
void multiply_f32(MatView<const float> a, MatView<const float> b, bool add,
                  MatView<float> c);

/// The same of factors in bf16, by instructions of the CPU. Called where it has them.
void multiply_bf16(MatView<const c10::BFloat16> a, MatView<const c10::BFloat16> b,
                   bool add, MatView<float> c);
bool has_bf16_instructions();

/// Who it is, with the version: "oneDNN 2.6.3".
std::string library();

}  // namespace lagwise::ops::products
