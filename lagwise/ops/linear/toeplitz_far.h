#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// The rows of toeplitz_linear that its transforms would lose. A transform errs by the
/// largest of all weights t = exp(bias); a row that reads only far smaller ones (with
/// more queries than keys, those far behind the last key) would drown in that error, or
/// in zeros. These rows are summed up pair by pair, relative to their own largest
/// weight: M (D + E) multiply-adds each.
struct FarRows {
  at::Tensor rows;  ///< [F], int64, rising
  at::Tensor top;   ///< [F, 1]: the largest bias that each row reads, finite

  /// Of a bias [N+M-1] over m keys; row i reads entries [i, i + m).
  FarRows(const at::Tensor& bias, int64_t m);
  bool any() const { return rows.numel() > 0; }
};

/// sum_j exp(bias - top) (q_i . k_j) w_j for the far rows, [E', F]; q [D, N], k [D, M],
/// w [E', M].
at::Tensor far_sums(const FarRows& far, const at::Tensor& bias, const at::Tensor& q,
                    const at::Tensor& k, const at::Tensor& w);

/// Where the gradients of those sums go, g [E', F] being what they receive: rows of dq
/// [D, N] are set; dk [D, M], dw [E', M] and d_bias [N+M-1] are added to.
void far_gradient(const FarRows& far, const at::Tensor& bias, const at::Tensor& q,
                  const at::Tensor& k, const at::Tensor& w, const at::Tensor& g,
                  const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dw,
                  const at::Tensor& d_bias);

}  // namespace lagwise::ops
