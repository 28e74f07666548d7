#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace lagwise::ops {

/// What to compute. Every tensor is optional; undefined means "none".
struct LinearOptions {
  bool causal = false;
  std::string feature_map = "none";  ///< pointwise: see ops/feature_map.h
  at::Tensor decay;  ///< [H] or [H, D]: log of the factor per step, <= 0; causal only
  std::string denominator = "same";  ///< same, separate (q_norm . k_norm), none
  at::Tensor q_norm, k_norm;  ///< [B, H, N, F], [B, H, M, F]; also go through the map
  double eps = 1e-6;
  std::string eps_mode = "add";  ///< add: den + eps; clamp: max(den, eps)

  /// [B, H, M]: key j counts exp(log_scale_j) times. A running maximum keeps the sums
  /// in range, so any size will do. Needs a denominator, which cancels the maximum,
  /// and eps = 0, which would not.
  at::Tensor log_scale;

  /// Ragged batches: see ops/torch/sequences.h; causal attention has no key_*. Rows that
  /// belong to no sequence give zeros.
  at::Tensor lengths, key_lengths;        ///< [B]: the real rows of a padded batch
  at::Tensor cu_seqlens, key_cu_seqlens;  ///< [S + 1]: sequences packed into B = 1 row

  /// [B, H, N], in a step [B, H]: a gate, the log of a further factor by which the past
  /// fades before row i, added to `decay`; causal only. -inf is the border of a document:
  /// nothing from before it is read, in values or gradients. Numbers above 0 are not
  /// looked for: with them the past grows.
  at::Tensor log_decay;

  /// [B, H, N], in a step [B, H]: given, rows are written by the delta rule, which
  /// replaces what a key recalls: S += b_i k_i (v_i - S^T k_i)^T. b in [0, 2] and keys of
  /// length 1 keep S in range; neither is looked for. Causal only, without a denominator,
  /// log_scale or a decay per channel.
  at::Tensor write_strength;

  at::Tensor starts, key_starts;  ///< [B]: the first real row, where padding is on the
                                  ///<   left; `lengths` then counts from there
};

/// The whole past of every head, in O(D E) numbers. For packed sequences, S takes the
/// place of B.
struct LinearState {
  at::Tensor s;  ///< [B, H, D, E]
  at::Tensor z;  ///< [B, H, D], or [B, H, F] for separate; empty [B, H, 0] for none
  at::Tensor m = {};  ///< [B, H]: s and z stand for s exp(m), z exp(m); only with
};                    ///<   log_scale. No gradient: a quotient does not depend on it

struct LinearResult {
  at::Tensor out;  ///< [B, H, N, E]
  LinearState state;
};

/// Linear attention, differentiable once, f32 or f64, any strides; bf16 is stored and
/// returned, while the arithmetic and the state are f32.
///
///     o_i = sum_{j visible} (phi(q_i) . phi(k_j)) e^(c_j) g^(i-j) v_j / den_i
///
/// with c = log_scale; a gate l = log_decay multiplies the weight of a pair by
/// e^(l_(j+1) + ... + l_i), and write_strength puts what the delta rule writes in the
/// place of v_j.
/// Shapes  q [B, H, N, D], k [B, H, M, D], v [B, H, M, E] -> [B, H, N, E];
///         causal needs N = M.
/// Maths   docs/maths/linear_attention.md, docs/maths/memory.md
at::Tensor linear_attention(const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const LinearOptions& options);

/// The same, beginning from a state (undefined tensors: from nothing) and
/// handing on the state after the last key. Gradients flow through both.
LinearResult linear_attention_stateful(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v, const LinearState& from,
                                       const LinearOptions& options);

/// One token: advances `state` in place and returns [B, H, E]. q, k [B, H, D],
/// v [B, H, E], and q_norm, k_norm [B, H, F] where the denominator is separate.
/// Constant time and memory at any position; no gradient.
at::Tensor linear_attention_step(const at::Tensor& q, const at::Tensor& k,
                                 const at::Tensor& v, const LinearState& state,
                                 const LinearOptions& options);

}  // namespace lagwise::ops
