#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// Features that are multiplied as q_i . k_j: the queries and keys themselves, or the
/// norm features of a separate denominator. The products are the weights of the rows
/// [v_j | 1]: the values, if there are any, and the 1 that sums up a denominator. The
/// gradient of their weighted sum is [d_out_i / den_i | d_den_i].
struct Pair {
  at::Tensor q, k, d_q, d_k;  // [B, H, N, D], [B, H, M, D]
  at::Tensor v, d_v, d_out;   // undefined: no values
  at::Tensor inverse, d_den;  // [B, H, N]; undefined: no denominator
  at::Tensor s0, s1, d_s1;    // state before the first and after the last key, and
  at::Tensor z0, z1, d_z1;    //   the gradient of the latter; undefined: zero
  at::Tensor d_s0, d_z0;      // to be filled
  at::Tensor d_decay;         // [B, H, D] f64, zeros to add to; undefined: not asked
  at::Tensor d_gate;          // [B, H, N], zeros to add to; undefined: not asked

  int64_t value_width() const { return v.defined() ? v.size(3) : 0; }
  int64_t width() const { return value_width() + (d_den.defined() ? 1 : 0); }
};

}  // namespace lagwise::ops
