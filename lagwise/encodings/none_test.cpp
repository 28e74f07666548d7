#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

TEST(None, LeavesEverythingAlone) {
  const auto none = make_encoding("none", {.heads = 2, .dim = 16});
  const at::Tensor x = at::randn({1, 3, 32}), q = at::randn({1, 2, 3, 16});
  const at::Tensor k = at::randn({1, 2, 5, 16});
  EXPECT_TRUE(none->embed(x, {}).is_same(x));
  const Encoded e = encode_once(*none, q, k, {});
  EXPECT_TRUE(e.q.is_same(q));
  EXPECT_TRUE(e.k.is_same(k));
  EXPECT_EQ(e.scale, 0.25);
}

}  // namespace
}  // namespace lagwise
