#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

TEST(Learned, AddsARowOfItsTable) {
  const auto encoding = make_encoding("learned:max=20", {.heads = 2, .dim = 3});
  at::Tensor table = encoding->shared()[0].second;
  ASSERT_EQ(table.sizes(), (at::IntArrayRef{20, 6}));
  table.set_data(table.to(at::kDouble));  // the encoding sees it
  table.requires_grad_(true);
  const at::Tensor x = at::randn({2, 5, 6}, at::kDouble);
  const at::Tensor got = encoding->embed(x, {.query_start = 15});
  EXPECT_TRUE(at::equal(got, x + table.narrow(0, 15, 5)));
  (got * got).sum().backward();
  EXPECT_TRUE(at::allclose(table.grad().narrow(0, 15, 5), (2 * got.detach()).sum(0)));
  EXPECT_TRUE(table.grad().narrow(0, 0, 15).eq(0).all().item<bool>());
}

TEST(Learned, StartsSmallAndFromItsSeed) {
  const auto one = make_encoding("learned", {.heads = 4, .dim = 16, .seed = 1});
  const auto same = make_encoding("learned", {.heads = 4, .dim = 16, .seed = 1});
  const auto other = make_encoding("learned", {.heads = 4, .dim = 16, .seed = 2});
  const at::Tensor table = one->shared()[0].second;
  EXPECT_NEAR(table.std().item<double>(), 0.02, 0.0005);
  EXPECT_TRUE(at::equal(table, same->shared()[0].second));
  EXPECT_FALSE(at::equal(table, other->shared()[0].second));
}

TEST(Learned, NamesThePositionAndTheSizeOfTheTableItIsNotIn) {
  const auto encoding = make_encoding("learned:max=20", {.heads = 2, .dim = 3});
  try {
    encoding->embed(at::zeros({1, 5, 6}), {.query_start = 17});
    FAIL() << "accepted a position beyond its table";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "learned: position 21 is not in its table of 20 positions (0 to 19); make "
        "it with a larger max=");
  }
  EXPECT_NO_THROW(encoding->embed(at::zeros({1, 0, 6}), {.query_start = 100}));
  EXPECT_THROW(make_encoding("learned:max=0", {.heads = 2, .dim = 3}),
               std::invalid_argument);
}

TEST(Learned, LeavesRowsWithoutAPlaceAlone) {
  const auto encoding = make_encoding("learned:max=20", {.heads = 2, .dim = 3});
  const at::Tensor x = at::randn({1, 4, 6});
  const at::Tensor e = encoding->embed(x, {.off_grid = 1});
  EXPECT_TRUE(at::equal(e[0][0], x[0][0]));
  EXPECT_TRUE(at::equal(e[0][1], x[0][1] + encoding->shared()[0].second[0]));
}

}  // namespace
}  // namespace lagwise
