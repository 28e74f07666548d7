#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "lagwise/kernels/add_rows.h"

namespace lagwise::ops {

/// to += parts[0] + parts[1] + ..., one after the other: sums that threads made of their
/// pieces come together in the same order whoever made them. parts [P, numbers of to],
/// both dense.
inline void add_in_order(const at::Tensor& parts, const at::Tensor& to) {
  constexpr int64_t kLeast = 1 << 15;  // numbers of one thread
  AT_DISPATCH_FLOATING_TYPES(to.scalar_type(), "add_in_order", [&] {
    const int64_t count = to.numel();
    scalar_t* const sum = to.data_ptr<scalar_t>();
    at::parallel_for(0, count, kLeast, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < parts.size(0); ++i) {
        const scalar_t* const part = parts.data_ptr<scalar_t>() + i * count;
        const int64_t some = end - begin;
        kernels::add_rows<scalar_t>({part + begin, 1, some, some, 1}, nullptr,
                                    {sum + begin, 1, some, some, 1});
      }
    });
  });
}

}  // namespace lagwise::ops
