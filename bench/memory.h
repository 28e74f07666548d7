#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace lagwise::bench {

/// The most bytes of tensors alive at once during `call`, on any thread, beyond
/// those alive before it and beyond the tensors it returns: its working memory.
///
/// Sees everything ATen's CPU allocator hands out, the scratch of forward and
/// backward included; not what comes from malloc or new, such as the small
/// std::vector a step works in.
int64_t extra_bytes(const std::function<std::vector<at::Tensor>()>& call);

/// What the kernel could still hand out, as it says itself.
int64_t free_bytes();

}  // namespace lagwise::bench
