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

/// How far windows of `context` tokens advance, h: an eighth of it, rounded down, at
/// least 1. A window that advanced by half would show its targets three quarters of the
/// context on average, and a memory of one whole context would win against it.
int64_t slide_of(int64_t context);

/// The losses of the targets [from, N) seen through windows of `context` tokens whose
/// positions are counted anew: [B, N - from]. The windows advance by h = slide_of, and
/// each counts for its last h targets, the first for [from, from + h): so a target sees
/// between context - h + 1 and context tokens. Expects from + h >= context.
at::Tensor losses_in_context(Model& model, const at::Tensor& tokens,
                             const at::Tensor& targets, int64_t context, int64_t from,
                             const Draw& draw);

/// The restart line: the same targets with a context of the training length L. Below L
/// this is the same pass as that over long windows: `known` holds its losses, of which
/// those are taken over.
at::Tensor restart_losses(Model& model, const at::Tensor& tokens,
                          const at::Tensor& targets, const at::Tensor& known,
                          const Draw& draw);

}  // namespace lagwise
