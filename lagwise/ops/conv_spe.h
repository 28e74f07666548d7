#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "lagwise/ops/encoded.h"

namespace lagwise::ops {

struct ConvSpeOptions {
  int64_t realizations = 64;       ///< R
  std::string noise = "gaussian";  ///< or "sign"
  std::vector<int64_t> grid = {};  ///< empty: a line; else its cells are the rows
  int64_t query_start = 0, key_start = 0;  ///< positions of the first rows, on a line
  Draw draw = {};                          ///< decides the noise; `given` is not read
  at::Tensor z = {};            ///< noise to use instead, [H, D, S_1, .., S_dims, R];
  int64_t z_start = 0;          ///<   on a line, the position of its first sample
  std::string method = "auto";  ///< "direct", "fourier" (lines only), or the faster
};

/// Queries and keys times filtered noise (ConvSPE), without forming the code:
///
///     q'_{n,r} = (R D)^(-1/4) sum_d q_{n,d} sum_j a_d[j] z(h, d, r, n + j)
///     k'_{m,r} = (R D)^(-1/4) sum_d k_{m,d} sum_j b_d[j] z(h, d, r, m + j)
///
/// with a = query_kernel, b = key_kernel [H D, 1, kernel..], j over all taps of an
/// axis and of all axes of the grid.
///
/// Shapes    q [B, H, N, D], k [B, H, M, D]; results [B, H, N, R], [B, H, M, R].
/// Noise     z is a pure function of (draw, h, d, r, position): any length extends.
/// Threads   over heads and stretches of rows; the same bits for any number. With
///           method=direct a row has the same bits in any split of a sequence too.
/// Gradients for q, k and both kernels; noise is drawn again, not kept.
std::tuple<at::Tensor, at::Tensor> conv_spe(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& query_kernel,
                                            const at::Tensor& key_kernel,
                                            const ConvSpeOptions& options);

}  // namespace lagwise::ops
