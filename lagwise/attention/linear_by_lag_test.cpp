#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lagwise/attention/linear.h"

namespace lagwise {
namespace {

constexpr int64_t kHeads = 2, kDim = 4, kQueries = 5, kKeys = 7;

struct Case {
  at::Tensor q = at::rand({2, kHeads, kQueries, kDim}, at::kDouble);
  at::Tensor k = at::rand({2, kHeads, kKeys, kDim}, at::kDouble);
  at::Tensor v = at::randn({2, kHeads, kKeys, 3}, at::kDouble);
  at::Tensor bias = at::randn({kHeads, kQueries + kKeys - 1}, at::kDouble);
  at::Tensor key_log = at::randn({2, kHeads, kKeys}, at::kDouble);

  LinearInputs inputs() const {
    return {.q = {q, {}}, .k = {k, {}}, .v = v, .causal = false};
  }
  /// Over all pairs, with weights of its own for each key.
  at::Tensor reference(const at::Tensor& weight, double eps) const {
    const at::Tensor lag =
        at::arange(kQueries).unsqueeze(1) - at::arange(kKeys) + (kKeys - 1);
    const at::Tensor score = at::matmul(q, k.transpose(2, 3)) *
                             bias.exp().index({at::indexing::Slice(), lag}) *
                             weight.unsqueeze(2);
    return at::matmul(score, v) / (score.sum(-1, true) + eps);
  }
};

LinearAttention attention_of(const char* text) {
  return LinearAttention(text, {.heads = kHeads, .dim = kDim, .value_dim = 3});
}

TEST(LinearByLag, WeighsEachPairByItsLag) {
  at::manual_seed(1);
  const Case c;
  const at::Tensor got = attention_of("linear").attend_by_lag(c.inputs(), c.bias);
  const at::Tensor all = at::ones({2, kHeads, kKeys}, at::kDouble);
  EXPECT_TRUE(at::allclose(got, c.reference(all, 1e-6), 1e-9, 1e-9));
}

TEST(LinearByLag, LeavesPaddingOut) {
  at::manual_seed(2);
  const Case c;
  LinearInputs inputs = c.inputs();
  inputs.key_lengths = at::tensor({7L, 4L}), inputs.lengths = at::tensor({5L, 3L});
  at::Tensor real = at::ones({2, kHeads, kKeys}, at::kDouble);
  real[1].narrow(1, 4, 3).zero_();
  at::Tensor want = c.reference(real, 1e-6);
  want[1].narrow(1, 3, 2).zero_();
  const at::Tensor got = attention_of("linear").attend_by_lag(inputs, c.bias);
  EXPECT_TRUE(at::allclose(got, want, 1e-9, 1e-9));
}

TEST(LinearByLag, CountsKeysByTheirScale) {
  at::manual_seed(3);
  const Case c;
  LinearInputs inputs = c.inputs();
  inputs.k.log_scale = c.key_log + 2000;  // exp of it is past any number
  const at::Tensor got = attention_of("linear:eps=0").attend_by_lag(inputs, c.bias);
  EXPECT_TRUE(at::allclose(got, c.reference(c.key_log.exp(), 0), 1e-8, 1e-8));
}

TEST(LinearByLag, NeedsADenominator) {
  const Case c;
  const auto attention = attention_of("linear:map=none,denominator=none");
  EXPECT_THROW(attention.attend_by_lag(c.inputs(), c.bias), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
