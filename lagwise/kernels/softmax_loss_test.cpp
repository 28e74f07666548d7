#include "lagwise/kernels/softmax_loss.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;

template <class T>
void expect_definition(int64_t rows, int64_t classes, double tolerance) {
  const Mat<T> x = Mat<T>::uniform(rows, classes, 1, -6, 6);
  std::vector<int64_t> target;
  for (int64_t i = 0; i < rows; ++i)
    target.push_back(i % 4 == 3 ? -1 : i * 7 % classes);
  for_each_simd_target([&] {
    std::vector<T> loss(static_cast<size_t>(rows), T(NAN)), alone = loss;
    Mat<T> gradient(rows, classes, T(NAN));
    const int64_t right =
        softmax_loss<T>(x.view(), target.data(), loss.data(), gradient.view());
    EXPECT_EQ(softmax_loss<T>(x.view(), target.data(), alone.data(), {}), right);
    EXPECT_EQ(alone, loss);
    int64_t expected_right = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t t = target[static_cast<size_t>(i)];
      double sum = 0;
      int64_t best = 0;
      for (int64_t j = 0; j < classes; ++j) {
        sum += std::exp(static_cast<double>(x(i, j)));
        if (x(i, j) > x(i, best)) best = j;
      }
      expected_right += best == t;
      const double want = t < 0 ? 0 : std::log(sum) - static_cast<double>(x(i, t));
      EXPECT_NEAR(loss[static_cast<size_t>(i)], want, tolerance * 10);
      for (int64_t j = 0; j < classes; ++j) {
        const double p = std::exp(static_cast<double>(x(i, j))) / sum;
        EXPECT_NEAR(gradient(i, j), t < 0 ? 0 : p - (j == t ? 1 : 0), tolerance);
      }
    }
    EXPECT_EQ(right, expected_right);
  });
}

TEST(SoftmaxLoss, EqualsItsDefinition) {
  for (const int64_t classes : {1, 2, 7, 16, 33, 256}) {
    expect_definition<float>(9, classes, 4e-7);
    expect_definition<double>(9, classes, 1e-14);
  }
}

TEST(SoftmaxLoss, TakesScoresOfAnySize) {
  const float large = 1e30f;
  const std::vector<float> x = {large, 0, -large, 5, -large, -large};
  const std::vector<int64_t> target = {0, 0};
  std::vector<float> loss(2);
  Mat<float> gradient(2, 3);
  EXPECT_EQ(softmax_loss<float>({x.data(), 2, 3, 3, 1}, target.data(), loss.data(),
                                gradient.view()),
            2);
  EXPECT_EQ(loss[0], 0.0f);
  EXPECT_EQ(loss[1], 0.0f);
  EXPECT_NEAR(gradient(0, 0), 0.0f, 1e-6);
}

TEST(SoftmaxLoss, TakesTheFirstOfSeveralLargest) {
  const std::vector<double> x = {1, 3, 3};
  double loss = 0;
  const int64_t first = 1, second = 2;
  EXPECT_EQ(softmax_loss<double>({x.data(), 1, 3, 3, 1}, &first, &loss, {}), 1);
  EXPECT_EQ(softmax_loss<double>({x.data(), 1, 3, 3, 1}, &second, &loss, {}), 0);
}

TEST(SoftmaxLoss, HandsOnNan) {
  std::vector<float> x(40, 1.0f), gradient(40);
  x[17] = NAN;
  float loss = 0;
  const int64_t target = 3;
  softmax_loss<float>({x.data(), 1, 40, 40, 1}, &target, &loss,
                      {gradient.data(), 1, 40, 40, 1});
  EXPECT_TRUE(std::isnan(loss));
  EXPECT_TRUE(std::isnan(gradient[0]));
}

}  // namespace
}  // namespace lagwise::kernels
