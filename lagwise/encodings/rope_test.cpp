#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/kernel_by_lag.h"
#include "lagwise/ops/linear_attention.h"

namespace lagwise {
namespace {

using at::Tensor;

Tensor normal(at::IntArrayRef sizes, uint64_t seed = 1) {
  at::manual_seed(seed);
  return at::randn(sizes, at::kDouble);
}

Encoded run(const std::string& text, const Tensor& q, const Tensor& k,
            const Placement& at = {}) {
  const auto rope = make_encoding(text, {.heads = q.size(1), .dim = q.size(3)});
  return encode_once(*rope, q, k, at);
}

/// The definition of one row: planes of the layout turned by p f_j.
Tensor by_definition(const Tensor& row, const std::string& layout, int64_t d,
                     double p) {
  Tensor y = row.clone();
  for (int64_t j = 0; j < d / 2; ++j) {
    const int64_t a = layout == "half" ? j : 2 * j;
    const int64_t b = layout == "half" ? j + d / 2 : 2 * j + 1;
    const double t = p * std::pow(10000., -2 * double(j) / double(d));
    y[a] = std::cos(t) * row[a] - std::sin(t) * row[b];
    y[b] = std::cos(t) * row[b] + std::sin(t) * row[a];
  }
  return y;
}

TEST(Rope, TurnsThePlanesOfItsLayout) {
  for (const std::string layout : {"interleaved", "half"}) {
    for (const int64_t d : {8, 7}) {  // odd: the last coordinate stays
      const Tensor q = normal({1, 2, 3, d}), k = normal({1, 2, 5, d}, 2);
      const Placement at{.query_start = 400, .key_start = 398};
      const Encoded e = run("rope:layout=" + layout, q, k, at);
      EXPECT_TRUE(at::allclose(
          e.q[0][1][2], by_definition(q[0][1][2], layout, d / 2 * 2, 402), 1e-12));
      EXPECT_TRUE(at::allclose(
          e.k[0][0][4], by_definition(k[0][0][4], layout, d / 2 * 2, 402), 1e-12));
      EXPECT_DOUBLE_EQ(e.scale, 1 / std::sqrt(double(d)));
    }
  }
}

TEST(Rope, LayoutsDifferByAnOrderOfCoordinates) {
  const Tensor x = normal({1, 2, 40, 16});
  const Tensor order = at::cat({at::arange(0, 16, 2), at::arange(1, 16, 2)});
  const Tensor half = run("rope:layout=half", x.index_select(3, order), x).q;
  const Tensor interleaved = run("rope:layout=interleaved", x, x).q;
  EXPECT_TRUE(at::allclose(half, interleaved.index_select(3, order), 1e-12));
}

TEST(Rope, TurnsOnlyTheFirstCoordinatesWhenPartial) {
  const Tensor x = normal({1, 1, 9, 16});
  const Encoded e = run("rope:layout=half,partial=0.5", x, x);
  EXPECT_TRUE(at::equal(e.q.narrow(3, 8, 8), x.narrow(3, 8, 8)));
  EXPECT_TRUE(at::allclose(e.q.narrow(3, 0, 8),
                           run("rope:layout=half", x.narrow(3, 0, 8).contiguous(),
                               x.narrow(3, 0, 8).contiguous())
                               .q));
}

TEST(Rope, HoldsInFloatAtTenMillion) {
  const Tensor q = normal({1, 1, 4, 8}), k = normal({1, 1, 4, 8}, 2);
  const Placement far{.query_start = 10'000'000, .key_start = 10'000'000};
  const Tensor near = pair_scores(run("rope:layout=half", q, k));
  const Encoded e = run("rope:layout=half", q.to(at::kFloat), k.to(at::kFloat), far);
  EXPECT_TRUE(at::allclose(pair_scores(e).to(at::kDouble), near, 1e-5, 1e-5));
}

TEST(Rope, GivesEachAxisOfAGridItsShareAndLeavesRowsWithoutAPlace) {
  const Tensor x = normal({1, 1, 7, 8});
  Placement at;
  at.grid = {2, 3};
  at.off_grid = 1;
  const Tensor got = run("rope:layout=interleaved", x, x, at).q[0][0];
  EXPECT_TRUE(at::equal(got[0], x[0][0][0]));
  for (int64_t row = 1; row < 7; ++row) {
    const int64_t line = (row - 1) / 3, column = (row - 1) % 3;
    const Tensor down =
        by_definition(x[0][0][row].narrow(0, 0, 4), "interleaved", 4, double(line));
    const Tensor across =
        by_definition(x[0][0][row].narrow(0, 4, 4), "interleaved", 4, double(column));
    EXPECT_TRUE(at::allclose(got[row], at::cat({down, across}), 1e-12));
  }
  at.grid = {2, 3, 1};
  EXPECT_THROW(run("rope:layout=half", x, x, at), std::invalid_argument);  // 8 over 6
}

TEST(Xpos, IsADecayPerChannelInLinearAttentionAndTheSameInScores) {
  for (const std::string layout : {"interleaved", "half"}) {
    const Tensor q = normal({1, 2, 300, 9}), k = normal({1, 2, 300, 9}, 2);
    const Tensor scores =
        pair_scores(run("rope:layout=" + layout + ",xpos=scores,centre=150", q, k)) * 3;
    const Encoded e = run("rope:layout=" + layout + ",xpos=true", q, k,
                          {.query_start = 1'000'000, .key_start = 1'000'000});
    ops::LinearOptions options;
    options.causal = true;
    options.denominator = "none";
    options.decay = e.decay;
    const Tensor each = at::eye(300, at::kDouble).expand({1, 2, 300, 300}).contiguous();
    EXPECT_TRUE(at::allclose(ops::linear_attention(e.q, e.k, each, options),
                             scores.tril(), 1e-9, 1e-9));
  }
}

TEST(Xpos, RefusesPositionsWhereItsNumbersWouldOverflow) {
  const Tensor q = normal({1, 1, 2, 8});
  EXPECT_THROW(run("rope:layout=half,xpos=scores", q, q, {.query_start = 40'000}),
               std::invalid_argument);
  const Tensor f32 = q.to(at::kFloat);
  const Encoded e = run("rope:layout=half,xpos=scores", f32, f32,
                        {.query_start = 32'000, .key_start = 32'000});
  EXPECT_TRUE(pair_scores(e).isfinite().all().item<bool>());
}

/// LRPE's rotation with P = 1 and fixed angles is RoPE, with a decay and without.
TEST(Rope, IsTheRotationOfLrpeWithoutAProjectionBitForBit) {
  for (const auto type : {at::kDouble, at::kFloat})
    for (const std::string decay : {"none", "alibi", "lightning"}) {
      const Tensor q = normal({2, 3, 37, 7}).to(type),
                   k = normal({2, 3, 37, 7}, 2).to(type);
      const Placement at{.query_start = 400, .key_start = 400};
      const Encoded rope = run("rope:layout=interleaved,decay=" + decay, q, k, at);
      const Encoded lrpe =
          run("lrpe:lambda=rotation,p=identity,angles=fixed,decay=" + decay, q, k, at);
      EXPECT_TRUE(at::equal(rope.q, lrpe.q) && at::equal(rope.k, lrpe.k));
      EXPECT_EQ(rope.scale, lrpe.scale);
      ASSERT_EQ(rope.decay.defined(), decay != "none");
      if (rope.decay.defined()) {
        EXPECT_TRUE(at::equal(rope.decay, lrpe.decay));
      }
    }
}

TEST(Rope, DecaysInScoresAsItDoesInLinearAttention) {
  const Tensor q = normal({1, 2, 50, 8}), k = normal({1, 2, 50, 8}, 2);
  const Encoded e = run("rope:layout=half,decay=alibi", q, k);
  const Tensor turned = e.q.matmul(e.k.transpose(2, 3));
  const Tensor i = at::arange(50), lag = i.unsqueeze(1) - i;
  const Tensor factor = e.lag_bias.index({at::indexing::Slice(), lag + 49}).exp();
  ops::LinearOptions options;
  options.causal = true;
  options.denominator = "none";
  options.decay = e.decay;
  const Tensor each = at::eye(50, at::kDouble).expand({1, 2, 50, 50}).contiguous();
  EXPECT_TRUE(at::allclose(ops::linear_attention(e.q, e.k, each, options),
                           (turned * factor).tril(), 1e-10, 1e-12));
  const auto traits =
      make_encoding("rope:layout=half,decay=alibi", {.heads = 2, .dim = 8})->traits();
  EXPECT_TRUE(traits.exact && traits.linear_causal && !traits.linear_full);
  Placement grid;
  grid.grid = {5, 10};
  EXPECT_THROW(run("rope:layout=half,decay=alibi", q, k, grid), std::invalid_argument);
  Placement given;
  given.query_at = given.key_at = 2 * at::arange(50);
  EXPECT_THROW(run("rope:layout=half,decay=alibi", q, k, given), std::invalid_argument);
}

std::string complaint(const std::string& text) {
  try {
    make_encoding(text, {.heads = 1, .dim = 8});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Rope, AsksForItsLayoutAndSaysWhatIsWrong) {
  EXPECT_EQ(
      complaint("rope"),
      "rope: option 'layout' must be given, expected one of interleaved (pairs 2j, "
      "2j+1: RoFormer, GPT-J), half (pairs j, j+d/2: NeoX, Llama)");
  EXPECT_NE(complaint("rope:layout=neox").find("option 'layout' is 'neox'"),
            std::string::npos);
  EXPECT_EQ(complaint("rope:layout=half,partial=2"),
            "rope: expected partial in (0, 1], got 2.000000");
  EXPECT_EQ(complaint("rope:layout=half,xpos=true,decay=alibi"),
            "rope: expected xpos or decay, got xpos=true and decay=alibi");
  EXPECT_NE(complaint("rope:layout=half,factor=0.5").find("factor >= 1"),
            std::string::npos);
  const Tensor q = normal({1, 1, 2, 8});
  EXPECT_THROW(run("rope:layout=half,scaling=dynamic_ntk", q, q),
               std::invalid_argument);
  EXPECT_NO_THROW(run("rope:layout=half,scaling=dynamic_ntk", q, q, {.horizon = 5000}));
}

}  // namespace
}  // namespace lagwise
