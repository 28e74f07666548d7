#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <vector>

#include "lagwise/core/mat_view.h"
#include "lagwise/ops/products/one_thread.h"

namespace lagwise::ops::products {

/// torch's product, on the calling thread.
template <class T>
void call_addmm(MatView<const T> a, MatView<const T> b, bool add, MatView<T> c) {
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

/// The same of fewer than `many` rows, filled up with rows of zeros.
template <class T>
void call_addmm_filled(int64_t many, MatView<const T> a, MatView<const T> b, bool add,
                       MatView<T> c) {
  std::vector<T> rows(static_cast<size_t>(many * a.cols)),
      sums(static_cast<size_t>(many * c.cols));
  const MatView<T> filled{rows.data(), many, a.cols, a.cols, 1};
  const MatView<T> whole{sums.data(), many, c.cols, c.cols, 1};
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) filled(i, j) = a(i, j);
    if (add) std::copy_n(c.row(i), c.cols, whole.row(i));
  }
  call_addmm<T>(filled, b, add, whole);
  for (int64_t i = 0; i < c.rows; ++i) std::copy_n(whole.row(i), c.cols, c.row(i));
}

/// c = a b, or c += a b, by the BLAS that torch was built with.
///
/// Layers are cut into pieces of rows in more than one way, so a row must not depend on
/// how many others are multiplied with it. MKL sums the last rows in another order where
/// their number is no multiple of four (seen with AVX2), so what is left of a multiple of
/// sixteen is filled up to one. A single row is left alone: that is a step of decoding,
/// or a sum over all rows, which is never cut.
template <class T>
void multiply_by_torch(MatView<const T> a, MatView<const T> b, bool add, MatView<T> c) {
  constexpr int64_t kUnit = 16;
  if (c.rows == 1) return call_addmm(a, b, add, c);
  const int64_t whole = c.rows / kUnit * kUnit;
  if (whole > 0) call_addmm(a.slice(0, whole), b, add, c.slice(0, whole));
  if (whole < c.rows)
    call_addmm_filled(kUnit, a.slice(whole, c.rows), b, add, c.slice(whole, c.rows));
}

}  // namespace lagwise::ops::products
