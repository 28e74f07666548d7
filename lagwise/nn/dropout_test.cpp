#include "lagwise/nn/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::nn {
namespace {

Pass training(double p, int64_t step) {
  Pass pass;
  pass.dropout = p, pass.draw = {.seed = 1, .step = step};
  return pass;
}

TEST(Dropout, LeavesOutThatShareAndKeepsTheMean) {
  const auto y = dropout(at::ones({3, 100, 133}), training(0.25, 5), 3);
  EXPECT_NEAR(y.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.01);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.02);
}

TEST(Dropout, ChangesWithTheStepThePlaceAndTheSequence) {
  const auto x = at::ones({2, 64, 32});
  const auto y = dropout(x, training(0.5, 5), 3);
  EXPECT_TRUE(y.equal(dropout(x, training(0.5, 5), 3)));
  EXPECT_FALSE(y.equal(dropout(x, training(0.5, 6), 3)));
  EXPECT_FALSE(y.equal(dropout(x, training(0.5, 5), 4)));
  EXPECT_FALSE(y[0].equal(y[1]));
  EXPECT_FALSE(y[0][0].equal(y[0][1]));
  EXPECT_TRUE(dropout(x, training(0, 5), 3).is_same(x));
}

/// By sequences and along them, at odd places, in parts longer than a piece.
TEST(Dropout, LeavesOutTheSameInEveryPartOfABatch) {
  const auto x = at::ones({3, 1201, 31});
  const auto whole = dropout(x, training(0.3, 2), 1);
  for (const int64_t row : {0, 1, 3})
    for (const int64_t from : {0, 1, 700, 1201}) {
      Pass pass = training(0.3, 2);
      pass.first_row = row, pass.at.query_start = from;
      const auto part = dropout(x.slice(0, row).slice(1, from), pass, 1);
      EXPECT_TRUE(part.equal(whole.slice(0, row).slice(1, from))) << row << " " << from;
    }
}

TEST(Dropout, KnowsSequencesAtDifferentPositions) {
  const auto whole = dropout(at::ones({2, 9, 5}), training(0.5, 2), 1);
  Pass pass = training(0.5, 2);
  pass.starts = {4, 6};
  const auto parts = dropout(at::ones({2, 3, 5}), pass, 1);
  EXPECT_TRUE(parts[0].equal(whole[0].slice(0, 4, 7)));
  EXPECT_TRUE(parts[1].equal(whole[1].slice(0, 6, 9)));
}

}  // namespace
}  // namespace lagwise::nn
