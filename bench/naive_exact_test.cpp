#include "bench/naive_exact.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lagwise::bench {
namespace {

/// The definition for one row of one head, in double.
std::vector<double> definition(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v, int64_t i) {
  const auto at_d = [](const at::Tensor& x, int64_t row, int64_t column) {
    return double(x.accessor<float, 4>()[0][0][row][column]);
  };
  const int64_t d_end = q.size(3), e_end = v.size(3);
  std::vector<double> out(static_cast<size_t>(e_end), 0.0);
  double total = 0;
  for (int64_t j = 0; j <= i; ++j) {
    double score = 0;
    for (int64_t d = 0; d < d_end; ++d) score += at_d(q, i, d) * at_d(k, j, d);
    const double weight = std::exp(score / std::sqrt(double(d_end)));
    total += weight;
    for (int64_t e = 0; e < e_end; ++e) out[size_t(e)] += weight * at_d(v, j, e);
  }
  for (double& x : out) x /= total;
  return out;
}

TEST(NaiveExact, IsCausalSoftmaxAttention) {
  const at::Tensor q = at::rand({1, 1, 9, 5}), k = at::rand({1, 1, 9, 5});
  const at::Tensor v = at::rand({1, 1, 9, 3});
  const at::Tensor out = naive_exact(q, k, v);
  const auto outs = out.accessor<float, 4>();
  for (int64_t i = 0; i < 9; ++i) {
    const std::vector<double> row = definition(q, k, v, i);
    for (int64_t e = 0; e < 3; ++e) {
      EXPECT_NEAR(outs[0][0][i][e], row[size_t(e)], 1e-5);
    }
  }
}

TEST(NaiveExact, StepsGiveTheSameRows) {
  const at::Tensor q = at::rand({2, 3, 7, 4}), k = at::rand({2, 3, 7, 4});
  const at::Tensor v = at::rand({2, 3, 7, 6});
  const at::Tensor whole = naive_exact(q, k, v);
  const KeyValueCache cache = {at::zeros({2, 3, 7, 4}), at::zeros({2, 3, 7, 6})};
  for (int64_t i = 0; i < 7; ++i) {
    const at::Tensor row =
        naive_exact_step(q.select(2, i), k.select(2, i), v.select(2, i), cache, i);
    EXPECT_TRUE(row.allclose(whole.select(2, i), 1e-5, 1e-6)) << "position " << i;
  }
}

}  // namespace
}  // namespace lagwise::bench
