#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <vector>

namespace lagwise::ops {

using Optionals = c10::List<c10::optional<at::Tensor>>;

/// All tensors of a call as one argument of a private operator. The dispatcher knows
/// lists of optional tensors, but no undefined tensors.
inline Optionals pack(const std::vector<at::Tensor>& x) {
  Optionals list;
  for (const at::Tensor& one : x)
    list.push_back(one.defined() ? c10::optional<at::Tensor>(one) : c10::nullopt);
  return list;
}
inline std::vector<at::Tensor> unpack(const Optionals& list) {
  std::vector<at::Tensor> x;
  for (size_t i = 0; i < list.size(); ++i)
    x.push_back(list.get(i).value_or(at::Tensor()));
  return x;
}

}  // namespace lagwise::ops
