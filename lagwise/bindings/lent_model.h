#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lagwise/models/model.h"
#include "lagwise/ops/parameters.h"

namespace lagwise::bindings {

/// The config of a model, as a checkpoint's state.json has it. std::invalid_argument
/// names an entry that is missing or wrong.
ModelConfig model_config(const nlohmann::json& config);
ModelConfig model_config(const std::string& text);

/// What is trained of a model, in the order in which it made them.
Parameters parameters_of(const Model& model);

/// A model in evaluation mode that computes with the caller's parameters (lend.h).
std::shared_ptr<Model> lent_model(const ModelConfig& config,
                                  const std::vector<at::Tensor>& parameters);

}  // namespace lagwise::bindings
