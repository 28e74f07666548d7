#include "lagwise/ops/toeplitz_linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lagwise/ops/testing/exact_reference.h"
#include "lagwise/ops/testing/linear_outcome.h"

namespace lagwise::ops {
namespace {

using testing::Outcome;

struct ToeplitzProblem {
  at::Tensor q, k, v, bias, grad_out;
};

ToeplitzProblem random_toeplitz(int64_t n, int64_t m, int64_t d, int64_t e,
                                int64_t bias_heads = 2) {
  testing::Random random(1);
  const int64_t lags = std::max<int64_t>(0, n + m - 1);
  return {random.uniform({2, 2, n, d}, 0.1F, 1.0F),
          random.uniform({2, 2, m, d}, 0.1F, 1.0F), random.normal({2, 2, m, e}),
          random.normal({bias_heads, lags}), random.normal({2, 2, n, e})};
}

// The definition, with its N x M matrix.
at::Tensor by_definition(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const at::Tensor& bias, double eps) {
  const int64_t n = q.size(2);
  const at::Tensor factor = bias.exp()
                                .unsqueeze(1)
                                .expand({q.size(0), q.size(1), n, bias.size(1)})
                                .gather(3, reference::lag_index(q, k, {}));
  const at::Tensor w = at::matmul(q, k.transpose(-1, -2)) * factor;
  return at::matmul(w, v) / (w.sum(-1, true) + eps);
}

using Function = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                const at::Tensor&, double);

Outcome run(Function attention, const ToeplitzProblem& p, double eps) {
  std::vector<at::Tensor> x;
  for (const at::Tensor& t : {p.q, p.k, p.v, p.bias})
    x.push_back(t.detach().set_requires_grad(true));
  const at::Tensor out = attention(x[0], x[1], x[2], x[3], eps);
  const auto g = torch::autograd::grad({out}, x, {p.grad_out}, false, false, true);
  return {{"out", out.detach()},
          {"dq", g[0]},
          {"dk", g[1]},
          {"dv", g[2]},
          {"dlag_bias", g[3]}};
}

ToeplitzProblem map(ToeplitzProblem p,
                    const std::function<at::Tensor(at::Tensor)>& fn) {
  for (at::Tensor* t : {&p.q, &p.k, &p.v, &p.bias, &p.grad_out}) *t = fn(*t);
  return p;
}

TEST(ToeplitzLinear, MatchesTheDefinitionWithEveryGradient) {
  for (const auto& [n, m] : {std::pair{1, 1}, {1, 9}, {9, 1}, {63, 64}, {130, 75}})
    for (const int64_t heads : {1, 2}) {
      SCOPED_TRACE("N " + std::to_string(n) + " M " + std::to_string(m));
      const auto p = random_toeplitz(n, m, 7, 5, heads);
      const Outcome want = run(by_definition, p, 0.3);
      testing::expect_close(run(toeplitz_linear, p, 0.3), want, 1e-10);
      const auto single = map(p, [](at::Tensor t) { return t.to(at::kFloat); });
      // Sums of terms that cancel err by the size of the terms, about 1.
      const Outcome got = run(toeplitz_linear, single, 0.3);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_LE(testing::distance(got[i].value, want[i].value),
                  2e-5 * std::max(1.0, testing::largest(want[i].value)))
            << want[i].name;
    }
}

TEST(ToeplitzLinear, WalksThroughChannelsInBlocks) {
  const auto p = random_toeplitz(1500, 1400, 5, 90);  // one channel a block
  testing::expect_close(run(toeplitz_linear, p, 1e-6), run(by_definition, p, 1e-6),
                        1e-10);
}

TEST(ToeplitzLinear, TakesAnyStrides) {
  const auto p = random_toeplitz(20, 30, 7, 5);
  const auto strided = map(p, [](at::Tensor t) {
    return t.transpose(-1, -2).contiguous().transpose(-1, -2);
  });
  testing::expect_close(run(toeplitz_linear, strided, 0.1),
                        run(toeplitz_linear, p, 0.1), 1e-12);
}

TEST(ToeplitzLinear, SurvivesABiasThatWouldOverflow) {
  auto p = random_toeplitz(40, 40, 7, 5);
  p.bias = p.bias + 2000;
  const at::Tensor shifted = toeplitz_linear(p.q, p.k, p.v, p.bias, 0);
  const at::Tensor plain = by_definition(p.q, p.k, p.v, p.bias - 2000, 0);
  EXPECT_LE(testing::distance(shifted, plain), 1e-8);
}

// A bias that falls with the distance, and many more queries than keys: far rows see
// nothing but tiny weights, which count among themselves as those of near rows do.
ToeplitzProblem far_toeplitz(int64_t n, int64_t m, double slope) {
  ToeplitzProblem p = random_toeplitz(n, m, 7, 5);
  const at::Tensor lag = at::arange(-(m - 1), n, at::kDouble);
  p.bias = at::stack({lag.abs() * -slope, lag.abs() * (-slope / 8)});
  return p;
}

// The largest error of each row over the largest number in that row.
double worst_row(const at::Tensor& got, const at::Tensor& want) {
  const auto size = [](const at::Tensor& x) { return std::get<0>(x.abs().max(-1)); };
  return testing::largest(size(got.to(at::kDouble) - want) / size(want));
}

TEST(ToeplitzLinear, RowsFarFromAllKeysAreRightToo) {
  for (const double slope : {0.05, 0.5, 1.5}) {
    SCOPED_TRACE("slope " + std::to_string(slope));
    const ToeplitzProblem p = far_toeplitz(300, 20, slope);
    for (const double eps : {0.0, 1e-6}) {
      const Outcome want = run(by_definition, p, eps);
      testing::expect_close(run(toeplitz_linear, p, eps), want, 1e-10);
      const auto single = map(p, [](at::Tensor t) { return t.to(at::kFloat); });
      const Outcome got = run(toeplitz_linear, single, eps);
      for (const size_t i : {2, 3, 4}) {  // sums over all rows: dk, dv, dlag_bias
        SCOPED_TRACE(want[i].name);
        EXPECT_LE(testing::distance(got[i].value, want[i].value),
                  2e-5 * std::max(1.0, testing::largest(want[i].value)));
      }
      if (eps > 0) continue;
      EXPECT_LE(worst_row(got[0].value, want[0].value), 2e-5);
      EXPECT_LE(worst_row(got[1].value, want[1].value), 1e-3);  // terms cancel in dq
    }
  }
}

// Decoding asks with one row at a time, which reads M entries of the table.
TEST(ToeplitzLinear, EveryRowEqualsItselfAlone) {
  const int64_t n = 300, m = 20;
  const auto p =
      map(far_toeplitz(n, m, 0.5), [](at::Tensor t) { return t.to(at::kFloat); });
  for (const double eps : {0.0, 1e-6}) {
    const at::Tensor whole = toeplitz_linear(p.q, p.k, p.v, p.bias, eps);
    for (int64_t i = 0; i < n; ++i) {
      const at::Tensor alone =
          toeplitz_linear(p.q.narrow(2, i, 1), p.k, p.v, p.bias.narrow(1, i, m), eps);
      EXPECT_LE(testing::distance(whole.narrow(2, i, 1), alone),
                2e-5 * testing::largest(alone) + 1e-30)
          << "row " << i << ", eps " << eps;
    }
  }
}

TEST(ToeplitzLinear, GivesZerosWhereThereIsNothing) {
  const auto p = random_toeplitz(4, 0, 3, 2);
  EXPECT_EQ(testing::largest(toeplitz_linear(p.q, p.k, p.v, p.bias)), 0.0);
  const auto q = random_toeplitz(4, 4, 3, 2);
  EXPECT_EQ(testing::largest(toeplitz_linear(q.q, q.k * 0, q.v, q.bias)), 0.0);
}

TEST(ToeplitzLinear, AnyNumberOfThreadsGivesTheSameBits) {
  const auto p = random_toeplitz(130, 75, 7, 5);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Outcome alone = run(toeplitz_linear, p, 0.1);
  for (const int threads : {2, 4}) {
    at::set_num_threads(threads);
    testing::expect_same_bits(run(toeplitz_linear, p, 0.1), alone);
  }
  at::set_num_threads(before);
}

TEST(ToeplitzLinear, RefusesABiasThatDoesNotFit) {
  const auto p = random_toeplitz(4, 5, 3, 2);
  try {
    toeplitz_linear(p.q, p.k, p.v, at::zeros({2, 9}, at::kDouble));
    FAIL() << "accepted";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what_without_backtrace())
                  .find("toeplitz_linear: expected lag_bias [1 or H, N+M-1] = [2, 8]"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lagwise::ops
