#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace lagwise {

/// Tensors by name that are trained and saved. They are handles: what an optimiser
/// does to them, or a change of their type, their owner sees.
using Parameters = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace lagwise
