#pragma once

#include "lagwise/train/recipe.h"

namespace lagwise {

/// A bound from below on the parameters of a model.
double least_parameters(const ModelConfig& model);

/// A bound from below on the bytes training takes: parameters with gradients and two
/// moments each, and one row for each token and layer of a micro-step.
double least_bytes(const Recipe& recipe, const ModelConfig& model);

/// std::invalid_argument names the sizes where that is more than the machine has,
/// before any of it is asked for.
void check_memory(const Recipe& recipe, const ModelConfig& model);

}  // namespace lagwise
