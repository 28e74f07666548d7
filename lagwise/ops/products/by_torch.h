#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/from_blob.h>

#include "lagwise/core/mat_view.h"
#include "lagwise/ops/products/one_thread.h"

namespace lagwise::ops::products {

/// c = a b, or c += a b, by the BLAS that torch was built with.
template <class T>
void multiply_by_torch(MatView<const T> a, MatView<const T> b, bool add, MatView<T> c) {
  const OneThread one;
  // A pool's thread does not know what its caller has switched off.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto tensor = [](auto x) {
    return at::from_blob(const_cast<T*>(x.data), {x.rows, x.cols},
                         {x.row_step, x.col_step}, c10::CppTypeToScalarType<T>::value);
  };
  at::Tensor to = tensor(c);
  at::cpu::addmm_out(to, to, tensor(a), tensor(b), add ? 1 : 0, 1);
}

}  // namespace lagwise::ops::products
