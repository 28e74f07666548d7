#include "lagwise/core/numbers.h"

#include <gtest/gtest.h>

namespace lagwise {
namespace {

TEST(Numbers, OwnTogetherWhatTheyWereMadeOf) {
  Numbers<double> copy;
  EXPECT_TRUE(copy.empty());
  {
    const Numbers<double> made = std::vector<double>{1, 2, 3};
    copy = made;
    EXPECT_EQ(copy.data(), made.data());  // no second copy
  }
  EXPECT_EQ(copy.size(), 3);
  EXPECT_EQ(copy[2], 3);
}

TEST(Numbers, BorrowWithoutACopy) {
  const std::vector<float> from = {4, 5};
  const auto borrowed = Numbers<float>::borrowed(from);
  EXPECT_EQ(borrowed.data(), from.data());
  EXPECT_EQ(borrowed.span().size(), 2u);
}

}  // namespace
}  // namespace lagwise
