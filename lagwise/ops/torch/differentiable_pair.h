#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lagwise/ops/precision.h"
#include "lagwise/ops/torch/boxed.h"
#include "lagwise/ops/torch/node.h"
#include "lagwise/ops/torch/once_differentiable.h"

namespace lagwise::ops {

/// An operator and the one that computes its gradients:
///
///     forward    _x(arguments) -> results, all tensors
///     backward   _x_backward(gradients of the first results, bool[] wanted, the last
///                            `kept` results, arguments)
///                -> (Tensor, ...), a gradient for each of `inputs`
///
/// The gradient of a result nobody used is None; that of an input that is absent or not
/// wanted is an empty tensor, since the dispatcher returns no undefined ones.
struct DifferentiablePair {
  const char* name;               ///< begins every message
  const char* forward;            ///< "lagwise::_x"
  const char* backward;           ///< "lagwise::_x_backward"
  std::vector<size_t> inputs;     ///< places of the arguments that have gradients
  size_t results;                 ///< how many there are
  size_t differentiable;          ///< the first of them have gradients, the rest none
  size_t kept = results;          ///< the last of them are saved for the backward pass
  std::vector<size_t> rows = {};  ///< places of the arguments that are rows by head, as
                                  ///<   large as activations: computed with and kept
                                  ///<   as ops/precision.h says
  /// An argument that the backward pass reads only for the gradient of another one. It is
  /// not kept alive, and None is handed over, where that gradient is not wanted.
  struct KeptFor {
    size_t argument, of;
  };
  std::vector<KeptFor> kept_for = {};
};

/// Calls the pair's operator, forward or backward: takes its arguments off the stack and
/// leaves its results.
template <const DifferentiablePair& kPair>
void call_forward(Stack& stack) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kPair.forward, "");
  op.callBoxed(&stack);
}
template <const DifferentiablePair& kPair>
void call_backward(Stack& stack) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kPair.backward, "");
  op.callBoxed(&stack);
}

/// The step of the graph that a call of a pair is. Keeps every tensor that went in, and
/// the results that the backward pass reads.
template <const DifferentiablePair& kPair>
class PairNode : public torch::autograd::Node {
 public:
  using Variables = torch::autograd::variable_list;

  /// `inputs`: the tensors among the arguments, as they are kept.
  void keep(const Stack& arguments, const c10::List<bool>& wanted,
            const Variables& inputs, const Stack& results) {
    for (const at::Tensor& x : inputs) saved_.emplace_back(x, false);
    for (size_t i = results.size() - kPair.kept; i < results.size(); ++i)
      saved_.emplace_back(results[i].toTensor(), i < kPair.differentiable);
    arguments_ = arguments;
    for (c10::IValue& x :
         arguments_)  // those are kept above, where changes are noticed
      if (x.isTensor()) x = c10::IValue(kTensor);
    wanted_ = wanted;
  }

  Variables apply(Variables&& gradients) override {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
    gradients.resize(kPair.differentiable);
    const size_t tensors = saved_.size() - kPair.kept;
    const auto is_used = [](const at::Tensor& x) { return x.defined(); };
    if (std::none_of(gradients.begin(), gradients.end(), is_used))
      return Variables(tensors);
    Variables saved;
    for (const auto& x : saved_) saved.push_back(x.unpack(pointer_to(*this)));
    std::vector<size_t> places;  // of the tensors among the arguments
    Stack stack = backward_arguments(gradients, saved, places);
    call_backward<kPair>(stack);
    Variables results(tensors);
    for (size_t i = 0; i < tensors; ++i)
      for (size_t j = 0; j < kPair.inputs.size(); ++j)
        if (kPair.inputs[j] == places[i] && wanted_.get(j))
          results[i] = stack[j].toTensor();
    return results;
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    saved_.clear();
    released_ = true;
  }

  std::string name() const override { return kPair.forward; }

 private:
  Stack backward_arguments(const Variables& gradients, const Variables& saved,
                           std::vector<size_t>& places) const {
    Stack stack;
    for (const at::Tensor& x : gradients) stack.push_back(written(x));
    stack.emplace_back(wanted_);
    for (size_t i = saved.size() - kPair.kept; i < saved.size(); ++i)
      stack.emplace_back(saved[i]);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!is_tensor(arguments_[i])) {
        stack.push_back(arguments_[i]);
        continue;
      }
      stack.push_back(written(widened(saved[places.size()])));
      places.push_back(i);
    }
    return stack;
  }

  static constexpr const char* kTensor = "a saved tensor";
  static bool is_tensor(const c10::IValue& x) {
    return x.isString() && x.toStringRef() == kTensor;
  }

  std::vector<torch::autograd::SavedVariable> saved_;
  Stack arguments_;  // tensors hold kTensor in their places, absent ones None
  c10::List<bool> wanted_;
  bool released_ = false;
};

/// What a node keeps of the tensors among the arguments. Rows are rounded as
/// ops/precision.h says, in `arguments` too, so that the backward pass, which reads what is
/// kept, sees the numbers that were computed with.
template <const DifferentiablePair& kPair>
torch::autograd::variable_list kept_inputs(Stack& arguments) {
  torch::autograd::variable_list kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor()) continue;
    kept.push_back(arguments[i].toTensor());
    if (precision() != Precision::full &&
        std::find(kPair.rows.begin(), kPair.rows.end(), i) != kPair.rows.end()) {
      kept.back() = in_precision(kept.back(), precision());
      arguments[i] = widened(kept.back());
    }
    for (const auto& [argument, of] : kPair.kept_for)
      if (argument == i &&
          !(arguments[of].isTensor() && arguments[of].toTensor().requires_grad()))
        kept.back() = at::Tensor();
  }
  return kept;
}

/// The kernel of the pair's first operator under torch's key Autograd.
template <const DifferentiablePair& kPair>
void differentiate(const c10::OperatorHandle& op, Stack* stack) {
  const Stack arguments = take_arguments(op, *stack);
  torch::autograd::variable_list tensors, kept;
  for (const c10::IValue& x : arguments)
    if (x.isTensor()) tensors.push_back(x.toTensor());
  c10::List<bool> wanted;
  bool any = false;
  for (const size_t i : kPair.inputs) {
    wanted.push_back(arguments[i].isTensor() &&
                     arguments[i].toTensor().requires_grad());
    any |= wanted.get(wanted.size() - 1);
  }
  Stack results = arguments;
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    kept = kept_inputs<kPair>(results);
    call_forward<kPair>(results);
  }
  if (any && at::GradMode::is_enabled()) {
    const auto node = make_node<PairNode<kPair>>();
    node->set_next_edges(torch::autograd::collect_next_edges(tensors));
    for (size_t i = 0; i < kPair.differentiable; ++i) {
      at::Tensor result = results[i].toTensor();
      torch::autograd::set_history(result, node);
    }
    node->keep(arguments, wanted, kept, results);
  }
  stack->insert(stack->end(), results.begin(), results.end());
}

/// That of its second operator: a gradient that would be differentiated again refuses.
template <const DifferentiablePair& kPair>
void refuse_second(const c10::OperatorHandle& op, Stack* stack) {
  Stack results = take_arguments(op, *stack);
  torch::autograd::variable_list inputs, gradients;
  for (const c10::IValue& x : results)
    if (x.isTensor()) inputs.push_back(x.toTensor());
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    call_backward<kPair>(results);
  }
  for (const c10::IValue& x : results) gradients.push_back(x.toTensor());
  for (at::Tensor& x : once_differentiable(kPair.name, inputs, std::move(gradients)))
    stack->emplace_back(std::move(x));
}

}  // namespace lagwise::ops
