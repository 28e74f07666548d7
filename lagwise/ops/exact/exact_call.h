#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lagwise/ops/exact_attention.h"

namespace lagwise::ops {

/// The rows and keys of one sequence in one head, which attend to no others.
struct ExactPiece {
  int64_t batch, head;
  int64_t row, rows;  ///< queries [row, row + rows)
  int64_t key, keys;  ///< keys [key, key + keys)
  int64_t shift;      ///< position of its first query - that of its first key
  int64_t first_lag;  ///< the table entry that its first query and last key share
};

/// A call of exact attention after all checks. Tensors are dense.
struct ExactCall {
  at::Tensor q, k, v;
  at::Tensor lag_bias, lag_keys, lag_values;  ///< [1|H, L, 1], [1|H, L, D|E]
  at::Tensor key_bias;                        ///< [B, H, M, 1]
  int64_t b = 0, h = 0, n = 0, m = 0, d = 0, e = 0;
  bool causal = false;
  double scale = 1;
  int64_t window = 0;              ///< 0: none
  std::vector<ExactPiece> pieces;  ///< those with rows and keys, by sequence and head
  bool covers = true;              ///< whether every row belongs to a piece
};

/// Refuses what is wrong with one line that begins with the operator's name.
ExactCall check_exact(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const ExactOptions& options);

struct ExactForward {
  at::Tensor out;    ///< [B, H, N, E]
  at::Tensor stats;  ///< [B, H, N, 2]: see kernels/exact_attention.h
};
ExactForward exact_forward_cpu(const ExactCall& call);

struct ExactWanted {
  bool lag_bias = false, lag_keys = false, lag_values = false, key_bias = false;
};
struct ExactGradient {
  at::Tensor q, k, v;
  at::Tensor lag_bias, lag_keys, lag_values, key_bias;  ///< undefined if unwanted
};
ExactGradient exact_backward_cpu(const ExactCall& call, const ExactForward& saved,
                                 const at::Tensor& d_out, const ExactWanted& wanted);

}  // namespace lagwise::ops
