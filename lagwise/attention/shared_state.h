#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/peers.h"

namespace lagwise {

/// Linear attention over sequences that are cut along their length: each rank has some
/// contiguous rows q [B, H, n, D], k, v of every sequence, in the order of ranks, and n may
/// differ and be 0. All ranks call it together.
///
/// What the rows of rank p do to a state is an affine map S -> M_p S + s_p. Everybody
/// gathers all of these maps, whose size does not depend on n, and from those before its
/// own forms the state that its rows begin with. Full attention has one state for all,
/// the sum of the s_p.
///
/// `options` are those of the whole attention, their tensors by row those of this rank's
/// rows; `lengths` [B] counts the real ones among them. Not for packed sequences, nor for
/// keys other than those of the queries (key_lengths).
///
/// -> the results of this rank's rows, and the state after the last of them: that of the
///    last rank is the one of the whole sequence. In full attention everybody has it.
/// Gradients are those of the sum of all ranks' losses. The peers must outlive the graph.
/// f32 or f64.
/// Maths  docs/maths/sequence_parallel.md
ops::LinearResult linear_attention_together(const ops::Peers& peers,
                                            const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v,
                                            const ops::LinearOptions& options);

}  // namespace lagwise
