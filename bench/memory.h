#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace lagwise::bench {

/// The most bytes of tensors alive at once during `call`, on any thread, beyond
/// those alive before it and beyond the tensors it returns: its working memory.
///
/// Sees everything ATen's CPU allocator hands out, which is where operators take
/// scratch that grows with the sequence; not what comes from malloc or new, as
/// the small std::vector a step works in does.
int64_t extra_bytes(const std::function<std::vector<at::Tensor>()>& call);

}  // namespace lagwise::bench
