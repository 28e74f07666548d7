#pragma once

#include <torch/csrc/api/include/torch/version.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>

namespace lagwise::ops {

/// A step of the graph that autograd goes back through: made of torch's own parts, and not
/// of torch::autograd::Function, which torch.func refuses.
///
/// torch.func wraps tensors once for each level of differentiation and calls the Autograd
/// kernel of an operator for each level in turn. That is right for a node whose kernel
/// only hands its operands on to operators below autograd; torch's own operators are such.
#if TORCH_VERSION_MAJOR >= 2
template <class Node>
using NodePointer = c10::intrusive_ptr<Node>;

template <class Node>
NodePointer<Node> make_node() {
  return c10::make_intrusive<Node>();
}
inline auto pointer_to(torch::autograd::Node& node) { return node.getptr(); }
#else
template <class Node>
using NodePointer = std::shared_ptr<Node>;

template <class Node>
NodePointer<Node> make_node() {
  return NodePointer<Node>(new Node, torch::autograd::deleteNode);
}
inline auto pointer_to(torch::autograd::Node& node) { return node.shared_from_this(); }
#endif

}  // namespace lagwise::ops
