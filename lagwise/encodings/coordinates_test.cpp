#include "lagwise/encodings/coordinates.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace lagwise {
namespace {

TEST(Coordinates, CountFromTheStartOnALine) {
  const Placement at{.query_start = 1'000'000, .key_start = 5};
  EXPECT_TRUE(at::equal(
      query_coordinates(at, 3),
      at::tensor({1000000., 1000001., 1000002.}).view({1, 3, 1}).to(at::kDouble)));
  EXPECT_EQ(key_coordinates(at, 2)[0][1].item<double>(), 6);
  EXPECT_EQ(key_coordinates(at, 0).sizes(), (at::IntArrayRef{1, 0, 1}));
}

TEST(Coordinates, WalkAGridRowByRowAfterTheRowsWithoutAPlace) {
  Placement at;
  at.grid = {2, 3};
  at.off_grid = 1;
  const auto want =
      at::tensor({0, 0, 0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}).view({1, 7, 2});
  EXPECT_TRUE(at::equal(query_coordinates(at, 7).to(at::kLong), want.to(at::kLong)));
  // Any split of the rows sees the same places.
  at.query_start = 2;
  EXPECT_TRUE(at::equal(query_coordinates(at, 5).to(at::kLong),
                        want.narrow(1, 2, 5).to(at::kLong)));
  EXPECT_EQ(unplaced_queries(at, 5), 0);
  at.query_start = 0;
  EXPECT_EQ(unplaced_queries(at, 7), 1);
  EXPECT_THROW(query_coordinates(at, 8), std::invalid_argument);
}

TEST(Coordinates, TakeGivenPositions) {
  Placement at;
  at.query_at = at::tensor({3, 1, 4});
  EXPECT_TRUE(at::equal(query_coordinates(at, 3).view(-1),
                        at::tensor({3., 1., 4.}).to(at::kDouble)));
  at.query_at = at::arange(6).view({2, 3});
  EXPECT_EQ(query_coordinates(at, 3).sizes(), (at::IntArrayRef{2, 3, 1}));
  EXPECT_THROW(query_coordinates(at, 4), std::invalid_argument);
  at.grid = {8, 8};
  at.query_at = at::arange(6).view({3, 2});
  EXPECT_EQ(query_coordinates(at, 3).sizes(), (at::IntArrayRef{1, 3, 2}));
  at.query_at = at::arange(3);
  EXPECT_THROW(query_coordinates(at, 3), std::invalid_argument);
}

TEST(Coordinates, KnowWhenQueriesAndKeysStandTogether) {
  EXPECT_TRUE(same_places({}, 4, 4));
  EXPECT_FALSE(same_places({}, 4, 5));
  EXPECT_FALSE(same_places({.query_start = 1}, 4, 4));
  Placement at;
  at.query_at = at::arange(4);
  EXPECT_FALSE(same_places(at, 4, 4));
  at.key_at = at.query_at;
  EXPECT_TRUE(same_places(at, 4, 4));
}

TEST(Coordinates, RefuseAGridOfTooManyAxes) {
  Placement at;
  at.grid = {2, 2};
  EXPECT_NO_THROW(check_grid(at, 2, "x"));
  EXPECT_THROW(check_grid(at, 1, "x"), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
