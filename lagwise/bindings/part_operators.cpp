// Parts as operators. `part` is for programs that run step by step: its graph is that of
// what it computes with. `part_node` is for programs that torch traces (torch.compile,
// torch.export): it is one node, whose backward pass computes forwards once more.
//
//     part(text, parameters, inputs, names) -> results
//     part_node                                the same
//     part_node_backward(text, parameters, inputs, names, gradients of the results,
//                         wanted) -> gradients of the parameters, then of the inputs;
//                         empty where not wanted
//     part_parameters(text) -> names, initial values
//     part_facts(text) -> JSON
//
// python/lagwise/_part.py calls them. Operators for others are those of lagwise/ops.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "lagwise/bindings/lend.h"
#include "lagwise/bindings/part.h"
#include "lagwise/nn/parameters.h"
#include "lagwise/ops/torch/once_differentiable.h"

namespace lagwise::bindings {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Names = std::vector<std::string>;

std::unique_ptr<Part> lent_part(const std::string& text, const Tensors& parameters) {
  const nn::WithoutValues lent;
  auto part = make_part(text);
  lend(part->parameters(), parameters);
  return part;
}

Tensors call_part(std::string text, Tensors parameters, Tensors inputs, Names names) {
  return lent_part(text, parameters)->call(Inputs(inputs, names));
}

/// Results of an operator that torch traces are its own: none is an input, or a view of
/// one.
Tensors call_traced(std::string text, Tensors parameters, Tensors inputs, Names names) {
  const at::NoGradGuard no_graph;
  Tensors results = call_part(text, parameters, inputs, names);
  for (Tensor& one : results) {
    one = one.contiguous();
    for (const Tensors* given : {&parameters, &inputs})
      for (const Tensor& other : *given)
        if (one.storage().is_alias_of(other.storage())) one = one.clone();
  }
  return results;
}

/// Lets autograd record, wherever the caller stands: below it, in a backward pass.
class RecordHere {
 public:
  RecordHere() : before_(c10::impl::tls_local_dispatch_key_set()) {
    c10::impl::LocalDispatchKeySet here = before_;
    here.excluded_ =
        here.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    c10::impl::_force_tls_local_dispatch_key_set(here);
  }
  ~RecordHere() { c10::impl::_force_tls_local_dispatch_key_set(before_); }
  RecordHere(const RecordHere&) = delete;
  RecordHere& operator=(const RecordHere&) = delete;

 private:
  c10::impl::LocalDispatchKeySet before_;
  at::AutoGradMode on_{true};
};

/// The same tensors as leaves of a new graph; those with `wanted` have gradients.
Tensors as_leaves(const Tensors& tensors, const c10::List<bool>& wanted, size_t first) {
  Tensors leaves;
  for (size_t i = 0; i < tensors.size(); ++i)
    leaves.push_back(tensors[i].detach().set_requires_grad(wanted.get(first + i)));
  return leaves;
}

Tensors call_backward(std::string text, Tensors parameters, Tensors inputs, Names names,
                      Tensors gradients, c10::List<bool> wanted) {
  const size_t count = parameters.size() + inputs.size();
  TORCH_CHECK(wanted.size() == count, "part: expected wanted of ", count, ", got ",
              wanted.size());
  const RecordHere recording;
  const Tensors mine = as_leaves(parameters, wanted, 0);
  const Tensors given = as_leaves(inputs, wanted, parameters.size());
  const Tensors results = call_part(text, mine, given, names);
  TORCH_CHECK(gradients.size() == results.size(), "part: expected ", results.size(),
              " gradients, got ", gradients.size());
  Tensors roots, weights, leaves;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].requires_grad())
      roots.push_back(results[i]), weights.push_back(gradients[i]);
  for (const Tensors* some : {&mine, &given})
    for (const Tensor& leaf : *some)
      if (leaf.requires_grad()) leaves.push_back(leaf);
  Tensors found(leaves.size());
  if (!roots.empty() && !leaves.empty())
    found = torch::autograd::grad(roots, leaves, weights, /*retain_graph=*/false,
                                  /*create_graph=*/false, /*allow_unused=*/true);
  Tensors all;
  size_t next = 0;
  for (const Tensors* some : {&mine, &given})
    for (const Tensor& leaf : *some) {
      if (!leaf.requires_grad()) {
        all.push_back(at::empty({0}, leaf.options().requires_grad(false)));
        continue;
      }
      const Tensor& one = found[next++];
      all.push_back(one.defined() ? one.contiguous().clone() : at::zeros_like(leaf));
    }
  return all;
}

// ---- the node

Tensors run_node(const char* name, torch::jit::Stack arguments) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  op.callBoxed(&arguments);
  return arguments[0].toTensorVector();
}

struct PartFunction : torch::autograd::Function<PartFunction> {
  using Context = torch::autograd::AutogradContext;

  /// `tensors`: the parameters, then the inputs.
  static Tensors forward(Context* ctx, at::TensorList tensors, const std::string& text,
                         const Names& names) {
    const auto own = static_cast<std::ptrdiff_t>(tensors.size() - names.size());
    const Tensors all = tensors.vec();
    c10::List<bool> wanted;
    for (const Tensor& one : all) wanted.push_back(one.requires_grad());
    ctx->save_for_backward(all);
    ctx->saved_data["text"] = text;
    ctx->saved_data["names"] = names;
    ctx->saved_data["wanted"] = wanted;
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Tensors results = run_node("lagwise_bindings::part_node",
                               {text, Tensors(all.begin(), all.begin() + own),
                                Tensors(all.begin() + own, all.end()), names});
    Tensors whole;  // numbers that have no gradient
    for (const Tensor& one : results)
      if (!one.is_floating_point()) whole.push_back(one);
    ctx->mark_non_differentiable(whole);
    return results;
  }

  static Tensors backward(Context* ctx, Tensors gradients) {
    const Tensors all = ctx->get_saved_variables();
    Names names;
    for (const c10::IValue& name : ctx->saved_data["names"].toListRef())
      names.push_back(name.toStringRef());
    const auto own = static_cast<std::ptrdiff_t>(all.size() - names.size());
    const c10::List<bool> wanted = ctx->saved_data["wanted"].toBoolList();
    Tensors found;
    {
      const at::AutoGradMode off(false);
      found =
          run_node("lagwise_bindings::part_node_backward",
                   {ctx->saved_data["text"], Tensors(all.begin(), all.begin() + own),
                    Tensors(all.begin() + own, all.end()), names, gradients, wanted});
    }
    for (size_t i = 0; i < found.size(); ++i)
      if (!wanted.get(i)) found[i] = Tensor();
    Tensors depends = all;
    depends.insert(depends.end(), gradients.begin(), gradients.end());
    found = ops::once_differentiable("part", depends, std::move(found));
    found.resize(found.size() + 2);  // of the text and the names
    return found;
  }
};

Tensors differentiate_part(std::string text, Tensors parameters, Tensors inputs,
                           Names names) {
  Tensors all = std::move(parameters);
  all.insert(all.end(), inputs.begin(), inputs.end());
  return PartFunction::apply(at::TensorList(all), text, names);
}

// ---- what a part is

std::tuple<Names, Tensors> part_parameters(std::string text) {
  Names names;
  Tensors values;
  for (const auto& [name, tensor] : make_part(text)->parameters()) {
    names.push_back(name);
    values.push_back(tensor.detach().clone());
  }
  return {names, values};
}

std::string part_facts(std::string text) { return make_part(text)->facts().dump(); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(lagwise_bindings, m) {
  m.def("part(str text, Tensor[] parameters, Tensor[] inputs, str[] names) -> Tensor[]",
        call_part);
  m.def(
      "part_node(str text, Tensor[] parameters, Tensor[] inputs, str[] names) -> "
      "Tensor[]");
  m.def(
      "part_node_backward(str text, Tensor[] parameters, Tensor[] inputs, str[] "
      "names, "
      "Tensor[] gradients, bool[] wanted) -> Tensor[]");
  m.def("part_parameters(str text) -> (str[], Tensor[])", part_parameters);
  m.def("part_facts(str text) -> str", part_facts);
}
TORCH_LIBRARY_IMPL(lagwise_bindings, CPU, m) {
  m.impl("part_node", call_traced);
  m.impl("part_node_backward", call_backward);
}
TORCH_LIBRARY_IMPL(lagwise_bindings, Autograd, m) {
  m.impl("part_node", differentiate_part);
}

}  // namespace lagwise::bindings
