#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lagwise/core/numbers.h"

namespace lagwise::ops {

/// A copy of a tensor's numbers, row by row, as T; none of an undefined tensor.
template <class T>
Numbers<T> numbers_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  const at::Tensor dense =
      x.detach().to(c10::CppTypeToScalarType<T>::value).contiguous();
  const T* const first = dense.data_ptr<T>();
  return std::vector<T>(first, first + dense.numel());
}

}  // namespace lagwise::ops
