#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/models/model_config.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

class Model;

/// Tokens that one pass may take, so that its logits stay near 64 MB.
int64_t tokens_at_once(const ModelConfig& config);

/// The loss of every target of windows tokens [B, N], targets [B, N], each seeing all
/// of its window before it: [B, N] in nats, 0 where the target is -1. Computed in
/// chunks with carried state.
at::Tensor long_losses(Model& model, const at::Tensor& tokens,
                       const at::Tensor& targets, const Draw& draw);

/// The restart line: the same targets seen through windows of the training length L,
/// whose positions are counted anew. They begin at 0, h, 2h, ... with h = L/2 (rounded
/// down, at least 1). The first counts for all its targets [0, L), the k-th after it
/// for its last h, [kh + L - h, kh + L): from L on a target sees between L - h + 1 and
/// L tokens.
///
/// In [0, L) this is the same pass as that over long windows: `known` holds its losses,
/// of which those are taken over.
at::Tensor restart_losses(Model& model, const at::Tensor& tokens,
                          const at::Tensor& targets, const at::Tensor& known,
                          const Draw& draw);

}  // namespace lagwise
