#pragma once

#include "lagwise/models/batch.h"
#include "lagwise/runtime/model.h"

namespace lagwise {

/// The loss of a model of the runtime on a batch of texts, tokens [B, N] and targets
/// [B, N], each read from an empty state: what `Model::loss` gives of the model it was
/// exported from, but for the rounding of its weights. Nothing has a gradient, and
/// by_target is not filled.
///
/// std::invalid_argument where the texts are longer than the model has positions for, or
/// have tokens beyond its vocabulary.
Loss exported_loss(const runtime::Model& model, const Batch& batch);

}  // namespace lagwise
