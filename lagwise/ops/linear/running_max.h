#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lagwise/ops/linear/linear_call.h"

namespace lagwise::ops {

/// Rows that share one maximum: from a record up to the next, within a sequence.
struct Run {
  int64_t begin, end;
  double factor;  ///< exp(maximum before - maximum now), by which the past shrinks
};

/// Keys with weights exp(c_j), kept in range by a running maximum as in online softmax.
///
///     m_j = max(m_{j-1}, c_j)     weight_j = exp(c_j - m_j) <= 1
///     S_j = exp(m_{j-1} - m_j) S_{j-1} + weight_j k_j v_j^T
///
/// S stands for S exp(m). A key therefore changes only what comes after it, where the
/// maximum over all keys would let the future touch the past. A new maximum is rare
/// (about log N times among keys in random order), so a sequence falls into few runs,
/// each plain linear attention. Full attention has one run: its maximum is over all.
struct RunningMax {
  at::Tensor weight;                    ///< [B, H, M]
  at::Tensor last;                      ///< [S, H]: m after the last key
  std::vector<std::vector<Run>> heads;  ///< of every sequence and head

  /// Without log_scale: nothing to weigh, one run each.
  bool any() const { return weight.defined(); }
};

RunningMax running_max(const LinearCall& call);

/// The same runs, none longer than the stretch over which the gradient of gates may be
/// summed up row by row (kernels/gate_gradient.h).
std::vector<std::vector<Run>> anchored_runs(const std::vector<std::vector<Run>>& heads);

}  // namespace lagwise::ops
