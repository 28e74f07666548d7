#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise {

/// The unitary matrix P of LRPE that queries and keys are multiplied by before they are
/// turned. It leaves their products as they were, since P^H P = 1.
///
///     identity     y = x
///     householder  y = (1 - 2 u_k u_k^T) ... (1 - 2 u_1 u_1^T) x,  u = v / |v|
///     odd_even     y_2k = x_k, y_2k+1 = x_h+k, h = ceil(D/2)
///     dct          y_k = sqrt((k ? 2 : 1) / D) sum_n cos(pi (n + 1/2) k / D) x_n
///     fourier      y_k = D^-1/2 sum_n exp(-2 pi i n k / D) x_n, as [real | imag]
///
/// x [.., D] -> [.., D], or [.., 2D] where complex.
class LrpeProjection {
 public:
  static const std::vector<std::string>& kinds();

  LrpeProjection(const std::string& kind, int64_t dim);

  bool complex() const { return kind_ == "fourier"; }

  /// `v` [reflections, D], for householder alone; gradients flow to it. `learned`
  /// vectors are divided by |v| + 1e-6, as their authors do, fixed ones by |v|.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& v, bool learned) const;

 private:
  std::string kind_;
  at::Tensor matrix_;  // double [D, D or 2D], for dct and fourier
  at::Tensor index_;   // for odd_even
};

/// Vectors for reflections, standard normal, float [reflections, D].
at::Tensor householder_vectors(int64_t reflections, int64_t dim, uint64_t seed,
                               int64_t layer);

}  // namespace lagwise
