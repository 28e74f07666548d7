#include "lagwise/attention/random_directions.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <span>
#include <vector>

namespace lagwise {
namespace {

double dot(const double* a, const double* b, int64_t d) {
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) sum += a[i] * b[i];
  return sum;
}

/// row -= its part along each of `count` orthonormal rows. Done twice, because after
/// one time a row that lay almost in their span is mostly rounding error.
void make_orthogonal(double* row, const double* others, int64_t count, int64_t d) {
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t j = 0; j < count; ++j) {
      const double part = dot(row, others + j * d, d);
      for (int64_t i = 0; i < d; ++i) row[i] -= part * others[j * d + i];
    }
}

void scale(double* row, double factor, int64_t d) {
  for (int64_t i = 0; i < d; ++i) row[i] *= factor;
}

}  // namespace

at::Tensor random_directions(const Noise& noise, int64_t layer, int64_t m, int64_t d,
                             const DirectionChoice& choice) {
  const auto gaussian = [&](int64_t row, int64_t realisation, double* to) {
    noise.at({.layer = layer, .feature = row, .realisation = realisation})
        .fill_normal<double>(0, std::span(to, static_cast<size_t>(d)));
  };
  at::Tensor out = at::empty({m, d}, at::kDouble);
  double* const w = out.data_ptr<double>();
  for (int64_t j = 0; j < m; ++j) {
    double* const row = w + j * d;
    const int64_t before = choice.orthogonal ? j % d : 0;  // in this block
    gaussian(j, 0, row);
    make_orthogonal(row, row - before * d, before, d);
    scale(row, 1 / std::sqrt(dot(row, row, d)), d);
  }
  std::vector<double> other(static_cast<size_t>(d));
  for (int64_t j = 0; j < m; ++j) {
    gaussian(j, 1, other.data());
    const double square =
        choice.chi_norms ? dot(other.data(), other.data(), d) : static_cast<double>(d);
    scale(w + j * d, std::sqrt(square), d);
  }
  return out;
}

}  // namespace lagwise
