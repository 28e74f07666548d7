#include "lagwise/nn/pass.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::nn {
namespace {

TEST(Pass, PlacesEachSequenceWhereItStands) {
  Pass pass;
  pass.starts = {4, 9};
  pass.at.query_at = at::zeros({2, 3}, at::kLong);
  EXPECT_EQ(placement_of(pass, 1).query_start, 9);
  EXPECT_EQ(placement_of(pass, 1).key_start, 0);  // of cross attention
  pass.at.key_at = pass.at.query_at;
  EXPECT_EQ(placement_of(pass, 1).key_start, 9);
  EXPECT_FALSE(placement_of(pass, 0).query_at.defined());
}

TEST(Pass, EncodesSequencesAtDifferentPlacesEachByItself) {
  const auto rope = make_encoding("rope:layout=half", {.heads = 2, .dim = 4});
  const at::Tensor q = at::ones({2, 2, 3, 4}), k = q * 2;
  Pass pass;
  pass.starts = {0, 7};
  pass.at.query_at = pass.at.key_at = at::zeros({2, 3}, at::kLong);
  for (int64_t b = 0; b < 2; ++b)
    pass.codes.push_back(rope->code(placement_of(pass, b), {}, 3, 3));
  const Encoded got = encode_rows(*rope, q, k, {}, pass);
  for (int64_t b = 0; b < 2; ++b) {
    const Encoded want =
        encode_once(*rope, q.narrow(0, b, 1), k.narrow(0, b, 1), placement_of(pass, b));
    EXPECT_TRUE(got.q.narrow(0, b, 1).equal(want.q));
    EXPECT_TRUE(got.k.narrow(0, b, 1).equal(want.k));
  }
  EXPECT_FALSE(got.q[0].equal(got.q[1]));
}

}  // namespace
}  // namespace lagwise::nn
