#pragma once

#include <string>

#include "lagwise/models/batch.h"
#include "lagwise/ops/encoded.h"
#include "lagwise/train/adamw.h"

namespace lagwise {

class Model;

/// Where numbers stopped being finite, for people to look at: a parameter that is not
/// finite itself; else, going through the model once more on the batch, the first layer
/// whose result is not, or that was handed such a row; else the last parameter whose
/// gradient is not, which is where the way back met it first. Empty: nowhere.
std::string first_nonfinite(Model& model, const Batch& batch, const Draw& draw);

/// The first of them that is not finite; empty: all are.
std::string nonfinite_among(const std::vector<NamedTensor>& tensors);

}  // namespace lagwise
