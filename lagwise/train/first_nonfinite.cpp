#include "lagwise/train/first_nonfinite.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <map>
#include <string_view>

#include "lagwise/models/model.h"

namespace lagwise {
namespace {

bool finite(const at::Tensor& x) {
  return !x.defined() || !x.is_floating_point() || at::isfinite(x).all().item<bool>();
}

/// Listens to every operator torch runs. One that is handed a parameter tells by its
/// name in which layer we are; what comes in and goes out there is looked at.
struct Search {
  std::map<const c10::TensorImpl*, std::string> names;
  std::string found;
  bool looking = false;  // our own looking runs operators too
};

thread_local Search* search = nullptr;

struct Handed : at::ObserverContext {
  std::string layer;
};

std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

std::unique_ptr<at::ObserverContext> look_before(const at::RecordFunction& op) {
  if (!search || search->looking || !search->found.empty()) return nullptr;
  auto handed = std::make_unique<Handed>();
  search->looking = true;
  bool good = true;
  // What a copy is written to still holds whatever the memory held before.
  const size_t first = std::string_view(op.name()) == "aten::copy_" ? 1 : 0;
  for (const c10::IValue& input : op.inputs().slice(first)) {
    if (!input.isTensor() || !input.toTensor().defined()) continue;
    const auto name = search->names.find(input.toTensor().unsafeGetTensorImpl());
    if (name != search->names.end())
      handed->layer = layer_of(name->second);
    else
      good = good && finite(input.toTensor());
  }
  if (!good && !handed->layer.empty()) search->found = "before " + handed->layer;
  search->looking = false;
  return handed;
}

void look_after(const at::RecordFunction& op, at::ObserverContext* context) {
  const auto* handed = static_cast<const Handed*>(context);
  if (!search || search->looking || !search->found.empty()) return;
  if (!handed || handed->layer.empty()) return;
  search->looking = true;
  for (const c10::IValue& output : op.outputs())
    if (output.isTensor() && !finite(output.toTensor()))
      search->found = "in " + handed->layer;
  search->looking = false;
}

std::string nonfinite_layer(Model& model, const Batch& batch, const Draw& draw) {
  const c10::NoGradGuard no_graph;
  Search here;
  for (const auto& item : model.named_parameters())
    here.names[item.value().unsafeGetTensorImpl()] = item.key();
  const auto callback =
      at::addThreadLocalCallback(at::RecordFunctionCallback(look_before, look_after)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
  search = &here;
  try {
    if (!finite(model.logits(batch, draw)) && here.found.empty())
      here.found = "in the logits";
  } catch (...) {
    search = nullptr;
    at::removeCallback(callback);
    throw;
  }
  search = nullptr;
  at::removeCallback(callback);
  return here.found;
}

}  // namespace

std::string nonfinite_among(const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (!finite(tensor)) return name;
  return "";
}

std::string first_nonfinite(Model& model, const Batch& batch, const Draw& draw) {
  const std::vector<NamedTensor> parameters = trained_parameters(model);
  const std::string parameter = nonfinite_among(parameters);
  if (!parameter.empty()) return "in the parameter " + parameter;
  const std::string layer = nonfinite_layer(model, batch, draw);
  if (!layer.empty()) return layer;
  for (size_t i = parameters.size(); i-- > 0;)
    if (!finite(parameters[i].tensor.grad()))
      return "in the gradient of " + parameters[i].name;
  return "";
}

}  // namespace lagwise
