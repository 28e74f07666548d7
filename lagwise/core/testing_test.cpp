// Does the test support fail when it should?

#include "lagwise/core/testing.h"

#include <gtest/gtest-spi.h>

#include <limits>
#include <stdexcept>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/core/testing_test.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::testing::HWY_NAMESPACE {
int64_t this_target() { return HWY_TARGET; }
}  // namespace lagwise::testing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::testing {
namespace {

HWY_EXPORT(this_target);
std::string dispatched_to() {
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(this_target)());
}

TEST(Mat, IsBornFullOfNan) {
  for (Storage storage : kEveryStorage) {
    const Mat<float> x(3, 4, storage);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j) EXPECT_TRUE(std::isnan(x(i, j)));
  }
}

TEST(Mat, HoldsTheSameNumbersInEveryStorage) {
  const auto want = Mat<double>::uniform(5, 7, 1, -2.0, 3.0);
  EXPECT_NE(want(0, 0), want(0, 1));
  EXPECT_NE(want(0, 1), want(1, 0));
  for (Storage storage : kEveryStorage) {
    SCOPED_TRACE(name_of(storage));
    expect_close(Mat<double>::uniform(5, 7, 1, -2.0, 3.0, storage), want, 0.0);
    expect_close(Mat<float>::uniform(5, 7, 1, -2.0, 3.0, storage), want, 1e-7);
  }
}

TEST(Mat, LaysItsElementsOutAsAsked) {
  Mat<float> x(2, 3, Steps{-10, 2});
  EXPECT_EQ(&x(1, 0) - &x(0, 0), -10);
  EXPECT_EQ(&x(0, 1) - &x(0, 0), 2);
  EXPECT_EQ(x.data(), &x(0, 0));
  EXPECT_LT(Mat<float>(3, 3, Storage::reversed).view().row_step, 0);
  EXPECT_EQ(Mat<float>(3, 5, Storage::transposed).view().col_step, 3);
}

TEST(Mat, MayBeEmpty) {
  for (Storage storage : kEveryStorage) {
    EXPECT_EQ(Mat<float>(0, 3, storage).rows(), 0);
    EXPECT_EQ(Mat<float>(3, 0, storage).cols(), 0);
  }
}

TEST(Mat, CopiesAndMovesWithItsCanaries) {
  Mat<float> x(2, 2, 1.0f, Storage::reversed);
  Mat<float> copy = x;
  copy(1, 1) = 5.0f;
  EXPECT_EQ(x(1, 1), 1.0f);
  const Mat<float> moved = std::move(copy);
  EXPECT_EQ(moved(1, 1), 5.0f);
}

// EXPECT_NONFATAL_FAILURE runs its statement in a static function, so that what
// it needs is made inside.
void write_past_the_end() {
  Mat<float> x(2, 3, 0.0f);
  x.data()[6] = 0.0f;
}
void write_before_the_start() {
  Mat<double> x(2, 3, 0.0);
  x.data()[-1] = 0.0;
}
void write_into_the_padding() {
  Mat<float> x(2, 3, 0.0f, Storage::padded);
  x.data()[3] = std::numeric_limits<float>::quiet_NaN();
}
void write_into_an_empty_matrix() {
  Mat<float> x(0, 3);
  *x.data() = 0.0f;
}

TEST(Mat, ReportsAnOverwrittenCanaryWhenItDies) {
  EXPECT_NONFATAL_FAILURE(write_past_the_end(), "canary overwritten with 0 at 6");
  EXPECT_NONFATAL_FAILURE(write_before_the_start(), "canary overwritten with 0 at -1");
  EXPECT_NONFATAL_FAILURE(write_into_the_padding(), "canary overwritten with nan at 3");
  EXPECT_NONFATAL_FAILURE(write_into_an_empty_matrix(), "canary overwritten");
}

TEST(ExpectClose, AcceptsWhatIsClose) {
  const Mat<float> one(2, 2, 1.0f);
  expect_close(one, one, 0.0);
  expect_close(one.view(), Mat<double>(2, 2, 1.0 + 1e-6), 1e-5);
  expect_close(Mat<float>(2, 2, 1e-3f), Mat<float>(2, 2, 0.0f), 0.0, 1e-2);
  expect_close(Mat<float>(0, 5), Mat<float>(0, 5), 0.0);
}

TEST(ExpectClose, MeasuresAgainstTheLargestElement) {
  Mat<double> want(1, 2, 0.0), got(1, 2, 1e-6);
  want(0, 1) = 100.0;
  got(0, 1) = 100.0;
  expect_close(got, want, 1e-7);
}

TEST(ExpectClose, AcceptsEqualInfinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  expect_close(Mat<float>(1, 1, kInfinity), Mat<float>(1, 1, kInfinity), 0.0);
}

void compare_a_wrong_element() {
  Mat<float> got(3, 4, 1.0f);
  got(0, 0) = 1.25f;
  got(2, 1) = 1.5f;
  expect_close(got, Mat<float>(3, 4, 1.0f), 0.125);
}
void compare_a_nan_left_over() {
  Mat<float> got(2, 2);
  got(0, 0) = got(0, 1) = got(1, 0) = 1.0f;
  expect_close(got, Mat<float>(2, 2, 1.0f), 1e9);
}
void compare_with_nan() { expect_close(Mat<float>(1, 1, 0.0f), Mat<float>(1, 1), 1e9); }
void compare_other_shapes() {
  expect_close(Mat<float>(2, 3, 0.0f), Mat<float>(3, 2), 1);
}

TEST(ExpectClose, NamesTheWorstElement) {
  EXPECT_NONFATAL_FAILURE(
      compare_a_wrong_element(),
      "worst element (2, 1) of 3 x 4: got 1.5, want 1, error 0.5, allowed 0.125");
}

TEST(ExpectClose, RefusesNanHoweverLooseTheTolerance) {
  EXPECT_NONFATAL_FAILURE(compare_a_nan_left_over(), "worst element (1, 1)");
  EXPECT_NONFATAL_FAILURE(compare_a_nan_left_over(), "1 NaN");
  EXPECT_NONFATAL_FAILURE(compare_with_nan(), "want nan");
}

TEST(ExpectClose, RefusesOtherShapes) {
  EXPECT_FATAL_FAILURE(compare_other_shapes(), "rows differ");
}

TEST(ForEachSimdTarget, DispatchesToEachTargetInTurn) {
  std::vector<std::string> seen;
  for_each_simd_target([&] { seen.push_back(dispatched_to()); });
  EXPECT_EQ(seen, simd_targets());
  EXPECT_FALSE(seen.empty());
}

TEST(ForEachSimdTarget, RestoresTheBestTargetAfterwards) {
  const std::string best = dispatched_to();
  for_each_simd_target([] {});
  EXPECT_EQ(dispatched_to(), best);
  EXPECT_EQ(best, simd_targets().front());
  EXPECT_THROW(for_each_simd_target([] { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_EQ(dispatched_to(), best);
}

void fail_on_the_first_target() {
  bool first = true;
  for_each_simd_target([&] {
    EXPECT_FALSE(first);
    first = false;
  });
}

TEST(ForEachSimdTarget, NamesTheTargetThatFailed) {
  const std::string trace = "SIMD target " + simd_targets().front();
  EXPECT_NONFATAL_FAILURE(fail_on_the_first_target(), trace);
}

}  // namespace
}  // namespace lagwise::testing
#endif  // HWY_ONCE
