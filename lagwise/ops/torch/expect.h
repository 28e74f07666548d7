#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <string>

namespace lagwise::ops {

/// "[1, 2, any, 3]": the sizes wanted; -1 where any will do.
inline std::string wanted_sizes(at::IntArrayRef sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + (sizes[i] < 0 ? "any" : std::to_string(sizes[i]));
  return text + "]";
}

inline bool has_sizes(const at::Tensor& x, at::IntArrayRef sizes) {
  bool fits = x.dim() == static_cast<int64_t>(sizes.size());
  for (size_t i = 0; fits && i < sizes.size(); ++i)
    fits = sizes[i] < 0 || x.size(static_cast<int64_t>(i)) == sizes[i];
  return fits;
}

/// `x` has these sizes (-1: any), and the type and device of q. `shape` says in
/// letters what the sizes mean.
inline void expect_tensor(const char* op, const char* name, const char* shape,
                          const at::Tensor& x, at::IntArrayRef sizes,
                          const at::Tensor& q) {
  TORCH_CHECK(has_sizes(x, sizes), op, ": expected ", name, " ", shape, " = ",
              wanted_sizes(sizes), ", got ", x.sizes());
  TORCH_CHECK(x.scalar_type() == q.scalar_type(), op, ": expected ", name,
              " of the same type as q, ", q.scalar_type(), ", got ", x.scalar_type());
  TORCH_CHECK(x.device() == q.device(), op, ": expected ", name,
              " on the same device as q, ", q.device(), ", got ", x.device());
}

}  // namespace lagwise::ops
