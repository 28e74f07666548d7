#pragma once

#include <vector>

#include "lagwise/ops/parameters.h"

namespace lagwise::bindings {

/// Lets a part compute with the caller's tensors in place of its own parameters. Each of
/// its tensors takes over memory, version and place in the graph of autograd of the one
/// that is lent: gradients flow to the lent one, and autograd notices when it changes
/// before the backward pass. The part is of use for one call: it keeps what was lent.
///
/// std::invalid_argument where their number or a shape is not that of the part's own.
void lend(const Parameters& own, const std::vector<at::Tensor>& lent);

}  // namespace lagwise::bindings
