#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <type_traits>

namespace lagwise::ops {

/// A step of the graph that autograd goes back through: made of torch's own parts, and not
/// of torch::autograd::Function, which torch.func refuses.
///
/// torch.func wraps tensors once for each level of differentiation and calls the Autograd
/// kernel of an operator for each level in turn. That is right for a node whose kernel
/// only hands its operands on to operators below autograd; torch's own operators are such.
///
/// Who counts the references to a node is a matter of torch's version: at first
/// std::shared_ptr, by 2.13 the node itself.
constexpr bool kNodesCountThemselves =
    std::is_base_of_v<c10::intrusive_ptr_target, torch::autograd::Node>;

template <class Node>
using NodePointer = std::conditional_t<kNodesCountThemselves, c10::intrusive_ptr<Node>,
                                       std::shared_ptr<Node>>;

template <class Node>
NodePointer<Node> make_node() {
  if constexpr (kNodesCountThemselves)
    return c10::make_intrusive<Node>();
  else  // torch's own function: a long graph is not deleted node within node
    return NodePointer<Node>(new Node, [](auto* node) { deleteNode(node); });
}

template <class Node>
auto pointer_to(Node& node) {
  if constexpr (kNodesCountThemselves)
    return node.getptr();
  else
    return node.shared_from_this();
}

}  // namespace lagwise::ops
