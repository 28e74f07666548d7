#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lagwise/kernels/feature_map.h"
#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/torch/sequences.h"

namespace lagwise::ops {

/// One call of linear attention, checked: sizes, choices and tensors.
/// Letters as everywhere: B, H, N queries, M keys, D, E widths, F of the norm
/// features (0 without a denominator).
struct LinearCall {
  const char* op = "linear_attention";  ///< begins every message
  enum class Divide { none, same, separate };
  enum class DecayBy { none, head, channel };

  at::Tensor q, k, v, q_norm, k_norm, decay, log_scale, log_decay, write_strength;
  at::Tensor s, z, max;  ///< undefined: begin from nothing
  int64_t b, h, n, m, d, e, f;
  std::vector<Sequence> sequences;  ///< one per batch row, or as packed
  bool ragged;                      ///< some rows may belong to no sequence
  bool causal;
  Divide divide;
  DecayBy decay_by;
  kernels::FeatureMap map;
  double eps;
  bool clamp;

  int64_t states() const { return static_cast<int64_t>(sequences.size()); }
  int64_t heads() const { return states() * h; }  ///< of all sequences
};

/// Reads and checks the arguments; a TORCH_CHECK names what was expected and
/// what came. `step`: the tensors have no length axis.
LinearCall check_linear(const char* op, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const LinearState& from,
                        const LinearOptions& options, bool step = false);

}  // namespace lagwise::ops
