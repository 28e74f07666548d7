#include "lagwise/encodings/lrpe_projection.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>

#include <cmath>
#include <numbers>
#include <span>

#include "lagwise/core/noise.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {
namespace {

constexpr double kPi = std::numbers::pi;

at::Tensor dct_matrix(int64_t dim) {
  at::Tensor m = at::empty({dim, dim}, at::kDouble);
  auto entries = m.accessor<double, 2>();
  for (int64_t n = 0; n < dim; ++n)
    for (int64_t k = 0; k < dim; ++k)
      entries[n][k] = std::sqrt((k > 0 ? 2.0 : 1.0) / double(dim)) *
                      std::cos(kPi * (double(n) + 0.5) * double(k) / double(dim));
  return m;
}

at::Tensor fourier_matrix(int64_t dim) {
  at::Tensor m = at::empty({dim, 2 * dim}, at::kDouble);
  auto entries = m.accessor<double, 2>();
  const double size = 1 / std::sqrt(double(dim));
  for (int64_t n = 0; n < dim; ++n) {
    for (int64_t k = 0; k < dim; ++k) {
      const double angle = -2 * kPi * double(n * k % dim) / double(dim);
      entries[n][k] = size * std::cos(angle);
      entries[n][dim + k] = size * std::sin(angle);
    }
  }
  return m;
}

at::Tensor odd_even_index(int64_t dim) {
  at::Tensor index = at::empty({dim}, at::kLong);
  const int64_t half = (dim + 1) / 2;
  for (int64_t j = 0; j < dim; ++j)
    index.data_ptr<int64_t>()[j] = j % 2 == 0 ? j / 2 : half + j / 2;
  return index;
}

/// The product of the reflections as one matrix to multiply rows with, [D, D].
at::Tensor reflections(const at::Tensor& v, bool learned) {
  const at::Tensor norms = v.norm(2, at::IntArrayRef{1}, /*keepdim=*/true);
  const at::Tensor u = v / (learned ? norms + 1e-6 : norms);
  at::Tensor product = at::eye(v.size(1), v.options().requires_grad(false));
  for (const at::Tensor& u_i : u.unbind(0))
    product = product - 2 * at::matmul(product, u_i).unsqueeze(1) * u_i.unsqueeze(0);
  return product;
}

}  // namespace

const std::vector<std::string>& LrpeProjection::kinds() {
  static const std::vector<std::string> kinds = {"identity", "householder", "odd_even",
                                                 "dct", "fourier"};
  return kinds;
}

LrpeProjection::LrpeProjection(const std::string& kind, int64_t dim) : kind_(kind) {
  if (kind == "dct") matrix_ = dct_matrix(dim);
  if (kind == "fourier") matrix_ = fourier_matrix(dim);
  if (kind == "odd_even") index_ = odd_even_index(dim);
}

at::Tensor LrpeProjection::operator()(const at::Tensor& x, const at::Tensor& v,
                                      bool learned) const {
  if (index_.defined()) return x.index_select(-1, index_);
  if (matrix_.defined()) return at::matmul(x, matrix_.to(x.scalar_type()));
  if (kind_ == "householder")
    return at::matmul(x, reflections(v.to(x.scalar_type()), learned));
  return x;
}

at::Tensor householder_vectors(int64_t reflections, int64_t dim, uint64_t seed,
                               int64_t layer) {
  at::Tensor v = at::empty({reflections, dim}, at::kFloat);
  const Noise noise(seed, streams::kLrpe);
  for (int64_t i = 0; i < reflections; ++i)
    noise.at({.layer = layer, .feature = i})
        .fill_normal(0, std::span(v.data_ptr<float>() + i * dim, size_t(dim)));
  return v;
}

}  // namespace lagwise
