#pragma once

#include <cstdint>
#include <string>

#include "lagwise/models/model.h"

namespace lagwise::bench {

/// A model as people train it on CPUs today: ours, layer by layer, but for the two
/// things this library is about:
///
///     encoding   sine_spe's codes as tensors, formed once a pass and shared between
///                layers, as its authors do (materialised_spe.h)
///     attention  causal linear attention in chunks of plain torch operators
///                (torch_linear.h)
///
/// `config` names sine_spe and a linear attention with a pointwise map; both are
/// replaced where models take them: in the tables of encodings and attentions. The
/// rest (embedding, norms, projections, feed-forward, loss) is the same code.
/// Parameters have the same names and initial values.
ModelConfig plain_model(ModelConfig config);

/// Bytes that a training step of that model holds at once, at least: the codes, what
/// autograd keeps of every layer's gated codes, and two products [B, N, H, D, R].
int64_t plain_step_bytes(const ModelConfig& config, int64_t batch, int64_t n);

}  // namespace lagwise::bench
