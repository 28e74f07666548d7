#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
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
/// As many as `count`, of which the first `needed` must be there.
inline std::vector<at::Tensor> unpack(const char* op, const Optionals& list,
                                      size_t count, size_t needed) {
  TORCH_CHECK(list.size() == count, op, ": expected a list of ", count,
              " tensors, got ", list.size());
  for (size_t i = 0; i < needed; ++i)
    TORCH_CHECK(list.get(i).has_value(), op, ": expected tensor ", i, " of ", count,
                ", got none");
  std::vector<at::Tensor> x;
  for (size_t i = 0; i < list.size(); ++i)
    x.push_back(list.get(i).value_or(at::Tensor()));
  return x;
}

}  // namespace lagwise::ops
