// A run's folder (docs/runs.md), read into tensors and written from them.
//
//     open_run(folder, which) -> config of the model, state.json, folder's notes, names,
//                                parameters, both moments of each
//     save_run(folder, state.json, names, parameters, moments)
//     weight_decays(name, value) -> whether weight decay pulls on that parameter

#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "lagwise/bindings/lent_model.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/train/checkpoint.h"
#include "lagwise/train/run.h"
#include "lagwise/train/run_folder.h"

namespace lagwise::bindings {
namespace {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;

std::tuple<std::string, std::string, Names, Names, Tensors, Tensors> open_folder(
    std::string folder, std::string which) {
  if (which != "best" && which != "last")
    throw std::invalid_argument("which: expected one of best, last, got '" + which +
                                "'");
  const Run run = open_run(folder, which == "best" ? Which::best : Which::last, "",
                           /*with_task=*/false);
  const Checkpoints checkpoints(folder);
  const AdamW optimiser(trained_parameters(*run.model));
  checkpoints.read_optimiser(run.step, optimiser);
  Names names;
  Tensors values, moments;
  for (const NamedTensor& one : optimiser.parameters()) {
    names.push_back(one.name);
    values.push_back(one.tensor.detach());
  }
  for (const NamedTensor& one : optimiser.state()) moments.push_back(one.tensor);
  return {model_config_text(run.model_config()),
          state_text(checkpoints.read_state(run.step)),
          run.notes,
          names,
          values,
          moments};
}

void copy_all(const std::vector<NamedTensor>& to, const Tensors& from,
              const char* what) {
  if (from.size() != to.size())
    throw std::invalid_argument(std::string("save_run: expected ") +
                                std::to_string(to.size()) + " " + what + ", got " +
                                std::to_string(from.size()));
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].tensor.sizes() != from[i].sizes())
      throw std::invalid_argument("save_run: " + to[i].name + " has another shape");
    at::Tensor tensor = to[i].tensor;
    tensor.copy_(from[i]);
  }
}

/// A checkpoint of the state's step, still to be judged. What the state says of other
/// checkpoints is left out: they are not in this folder.
void save_folder(std::string folder, std::string state_json, Names names,
                 Tensors parameters, Tensors moments) {
  const at::NoGradGuard no_graph;
  TrainerState state = parse_state("the state of a run", state_json);
  const auto model = make_model(state.model);
  const AdamW optimiser(trained_parameters(*model));
  for (size_t i = 0; i < optimiser.parameters().size(); ++i)
    if (i >= names.size() || names[i] != optimiser.parameters()[i].name)
      throw std::invalid_argument("save_run: expected a parameter " +
                                  optimiser.parameters()[i].name);
  copy_all(optimiser.parameters(), parameters, "parameters");
  if (!moments.empty()) copy_all(optimiser.state(), moments, "moments");
  state.best.reset(), state.files.clear();
  state.judged = false, state.pending = {};
  const RunFolder locked(folder);
  Checkpoints checkpoints(folder);
  const std::vector<int64_t> steps = checkpoints.steps();
  if (!steps.empty() && steps.back() >= state.step)
    throw std::runtime_error(folder + ": expected no checkpoint at step " +
                             std::to_string(state.step) + " or later, got one at " +
                             std::to_string(steps.back()));
  data::replace_file(run_file(folder, "recipe.toml"), state.recipe);
  checkpoints.save(state, optimiser);
}

bool weight_decays(std::string name, const at::Tensor& value) {
  return decays({name, value});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lagwise_bindings, m) {
  m.def(
      "open_run(str folder, str which) -> (str, str, str[], str[], Tensor[], "
      "Tensor[])",
      open_folder);
  m.def(
      "save_run(str folder, str state, str[] names, Tensor[] parameters, Tensor[] "
      "moments) -> ()",
      save_folder);
  m.def("weight_decays(str name, Tensor value) -> bool", weight_decays);
}

}  // namespace lagwise::bindings
