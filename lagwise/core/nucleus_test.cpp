#include "lagwise/core/nucleus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace lagwise {
namespace {

using Ids = std::vector<int64_t>;
constexpr double kNever = -std::numeric_limits<double>::infinity();

TEST(Softmax, HasTheRatiosOfItsDefinition) {
  const std::vector<double> x = {1000, 1001, 998.5};
  const std::vector<double> y = softmax(x, 2);
  EXPECT_NEAR(y[1] / y[0], std::exp(0.5), 1e-12);
  EXPECT_NEAR(y[2] / y[0], std::exp(-0.75), 1e-12);
  EXPECT_NEAR(y[0] + y[1] + y[2], 1, 1e-15);
}

TEST(Softmax, GivesNothingToWhatIsMasked) {
  const std::vector<double> y = softmax(std::vector<double>{kNever, 0, 0});
  EXPECT_EQ(y, (std::vector<double>{0, 0.5, 0.5}));
  EXPECT_EQ(softmax(std::vector<double>{kNever, kNever}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(softmax({}).empty());
}

TEST(Softmax, RefusesATemperatureOfZero) {
  EXPECT_THROW(softmax(std::vector<double>{1.0}, 0), std::invalid_argument);
  EXPECT_THROW(softmax(std::vector<double>{1.0}, std::nan("")), std::invalid_argument);
}

TEST(Nucleus, KeepsUpToTheFirstAboveP) {
  const std::vector<double> x = {0.125, 0.5, 0.25, 0.125};
  EXPECT_EQ(nucleus(x, 0).ids, (Ids{1}));
  EXPECT_EQ(nucleus(x, 0.49).ids, (Ids{1}));
  EXPECT_EQ(nucleus(x, 0.5).ids, (Ids{1, 2}));  // equal is not above
  EXPECT_EQ(nucleus(x, 0.75).ids, (Ids{1, 2, 0}));
  EXPECT_EQ(nucleus(x, 1).ids, (Ids{1, 2, 0, 3}));
  EXPECT_EQ(nucleus(x, 0.5).probabilities,
            (std::vector<double>{0.5 / 0.75, 0.25 / 0.75}));
}

TEST(Nucleus, NeverKeepsWhatCannotBe) {
  EXPECT_EQ(nucleus(std::vector<double>{0, 3, 0, 1}, 1).ids, (Ids{1, 3}));
  EXPECT_EQ(nucleus(std::vector<double>{0, 3, 0, 1}, 1).probabilities,
            (std::vector<double>{0.75, 0.25}));
  EXPECT_TRUE(nucleus(std::vector<double>{0, 0}, 0.9).ids.empty());
  EXPECT_TRUE(nucleus({}, 0.9).ids.empty());
}

TEST(Nucleus, RefusesAMassOutsideZeroToOne) {
  for (const double p : {-0.1, 1.1, std::nan("")})
    EXPECT_THROW(nucleus(std::vector<double>{1.0}, p), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
