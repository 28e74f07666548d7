#include "lagwise/bindings/lent_model.h"

#include <stdexcept>

#include "lagwise/bindings/lend.h"
#include "lagwise/core/errors.h"
#include "lagwise/nn/parameters.h"
#include "lagwise/train/adamw.h"
#include "lagwise/train/trainer_state.h"

namespace lagwise::bindings {

ModelConfig model_config(const std::string& text) {
  try {
    return parse_model_config("the config of a model", text);
  } catch (const DataError& error) {
    throw std::invalid_argument(error.what());
  }
}

ModelConfig model_config(const nlohmann::json& config) {
  return model_config(config.dump());
}

Parameters parameters_of(const Model& model) {
  Parameters all;
  for (const NamedTensor& one : trained_parameters(model))
    all.emplace_back(one.name, one.tensor);
  return all;
}

std::shared_ptr<Model> lent_model(const ModelConfig& config,
                                  const std::vector<at::Tensor>& parameters) {
  const nn::WithoutValues lent;
  const auto model = make_model(config);
  lend(parameters_of(*model), parameters);
  model->eval();
  return model;
}

}  // namespace lagwise::bindings
