#pragma once

#include <torch/csrc/api/include/torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <ATen/functorch/DynamicLayer.h>
#endif

namespace lagwise::ops {

/// While it lives, autograd nodes may be made under torch.func (grad, vjp, jacrev).
///
/// torch.func wraps tensors once for each level of differentiation and calls the Autograd
/// kernel of an operator once for each, from the innermost outwards. A node is right
/// there if all it does is to hand its operands on to operators below autograd, which
/// torch sends on to the next level. Ours do; torch cannot know, and refuses nodes from
/// C++ unless told so. Before version 2 it knew no levels here.
class LevelByLevel {
 public:
#if TORCH_VERSION_MAJOR >= 2
  LevelByLevel() {
    if (!at::functorch::functorchTLSAccessor()) return;  // nobody uses torch.func here
    before_ = at::functorch::getSingleLevelAutogradFunctionAllowed();
    at::functorch::setSingleLevelAutogradFunctionAllowed(true);
  }
  ~LevelByLevel() {
    if (at::functorch::functorchTLSAccessor())
      at::functorch::setSingleLevelAutogradFunctionAllowed(before_);
  }

 private:
  bool before_ = false;

 public:
#else
  LevelByLevel() {}
  ~LevelByLevel() {}
#endif
  LevelByLevel(const LevelByLevel&) = delete;
  LevelByLevel& operator=(const LevelByLevel&) = delete;
};

}  // namespace lagwise::ops
