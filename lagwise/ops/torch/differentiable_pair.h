#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "lagwise/ops/precision.h"
#include "lagwise/ops/torch/boxed.h"
#include "lagwise/ops/torch/level_by_level.h"
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

/// The autograd node of a pair. Saves every tensor that went in, and the results that
/// the backward pass reads.
template <const DifferentiablePair& kPair>
struct PairFunction : torch::autograd::Function<PairFunction<kPair>> {
  using Variables = torch::autograd::variable_list;
  using Context = torch::autograd::AutogradContext;

  /// `tensors`: those among the arguments, for autograd to see.
  static Variables forward(Context* ctx, at::TensorList tensors,
                           const Stack& arguments) {
    c10::List<bool> wanted;
    for (const size_t i : kPair.inputs)
      wanted.push_back(arguments[i].isTensor() &&
                       arguments[i].toTensor().requires_grad());
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Stack stack = arguments;
    Variables results, saved = tensors.vec();
    if (precision() != Precision::full) round_rows(stack, saved);
    drop_unread(arguments, saved);
    call_forward<kPair>(stack);
    for (const c10::IValue& x : stack) results.push_back(x.toTensor());
    saved.insert(saved.end(), results.end() - kPair.kept, results.end());
    ctx->save_for_backward(saved);
    ctx->set_materialize_grads(false);
    // Tensors are saved above, where autograd notices if someone changes them; here
    // their places hold true, those of absent ones None.
    c10::impl::GenericList rest(c10::AnyType::get());
    for (const c10::IValue& x : arguments)
      rest.push_back(x.isTensor() ? c10::IValue(kTensor) : x);
    ctx->saved_data["arguments"] = rest;
    ctx->saved_data["wanted"] = wanted;
    ctx->mark_non_differentiable(
        Variables(results.begin() + kPair.differentiable, results.end()));
    return results;
  }

  static Variables backward(Context* ctx, Variables gradients) {
    const Variables saved = ctx->get_saved_variables();
    const auto rest = ctx->saved_data["arguments"].toList();
    gradients.resize(kPair.differentiable);
    const auto is_used = [](const at::Tensor& x) { return x.defined(); };
    if (std::none_of(gradients.begin(), gradients.end(), is_used))
      return Variables(saved.size() - kPair.kept + 1);
    Stack stack;
    for (const at::Tensor& x : gradients) stack.push_back(written(x));
    stack.push_back(ctx->saved_data["wanted"]);
    const size_t tensors = saved.size() - kPair.kept;
    for (size_t i = tensors; i < saved.size(); ++i) stack.emplace_back(saved[i]);
    std::vector<size_t> places;  // of the tensors among the arguments
    for (size_t i = 0; i < rest.size(); ++i) {
      const c10::IValue x = rest.get(i);
      if (!is_tensor(x)) {
        stack.push_back(x);
        continue;
      }
      stack.push_back(written(widened(saved[places.size()])));
      places.push_back(i);
    }
    {
      at::AutoGradMode off(false);
      call_backward<kPair>(stack);
    }
    const auto wanted = ctx->saved_data["wanted"].toBoolList();
    Variables results(tensors), depends = gradients;
    for (size_t i = 0; i < tensors; ++i)
      for (size_t j = 0; j < kPair.inputs.size(); ++j)
        if (kPair.inputs[j] == places[i]) {
          depends.push_back(saved[i]);
          if (wanted.get(j)) results[i] = stack[j].toTensor();
        }
    results = once_differentiable(kPair.name, depends, std::move(results));
    results.emplace_back();  // of the arguments as a whole
    return results;
  }

 private:
  /// Rounds rows before they are computed with, so that the backward pass, which reads
  /// what is saved, sees the same numbers.
  static void round_rows(Stack& arguments, Variables& saved) {
    size_t tensor = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].isTensor()) continue;
      at::Tensor& kept = saved[tensor++];
      if (std::find(kPair.rows.begin(), kPair.rows.end(), i) == kPair.rows.end())
        continue;
      kept = in_precision(kept, precision());
      arguments[i] = widened(kept);
    }
  }

  static void drop_unread(const Stack& arguments, Variables& saved) {
    for (const auto& [argument, of] : kPair.kept_for) {
      if (arguments[of].isTensor() && arguments[of].toTensor().requires_grad())
        continue;
      const auto is_tensor = [](const c10::IValue& x) { return x.isTensor(); };
      const auto end = arguments.begin() + static_cast<std::ptrdiff_t>(argument);
      saved[static_cast<size_t>(std::count_if(arguments.begin(), end, is_tensor))] =
          at::Tensor();
    }
  }

  static constexpr const char* kTensor = "a saved tensor";
  static bool is_tensor(const c10::IValue& x) {
    return x.isString() && x.toStringRef() == kTensor;
  }
};

/// The kernel of the pair's first operator under torch's key Autograd.
template <const DifferentiablePair& kPair>
void differentiate(const c10::OperatorHandle& op, Stack* stack) {
  const Stack arguments = take_arguments(op, *stack);
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& x : arguments)
    if (x.isTensor()) tensors.push_back(x.toTensor());
  const LevelByLevel under_torch_func;
  for (at::Tensor& x : PairFunction<kPair>::apply(at::TensorList(tensors), arguments))
    stack->emplace_back(std::move(x));
}

}  // namespace lagwise::ops
