#include "lagwise/train/arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lagwise {
namespace {

TEST(Arithmetic, NamesWhatDiffers) {
  const Arithmetic old = {{"torch", "1.13.0"}, {"blas", "OpenBLAS"}};
  EXPECT_EQ(arithmetic_change(old, old), "");
  EXPECT_EQ(arithmetic_change(old, {{"torch", "2.13.0"}, {"blas", "MKL"}}),
            "blas MKL in place of OpenBLAS; torch 2.13.0 in place of 1.13.0");
  EXPECT_EQ(arithmetic_change({}, old), "") << "an older checkpoint does not say";
}

TEST(Arithmetic, IsThatOfThisProcess) {
  const Arithmetic here = arithmetic_here();
  for (const char* role : {"torch", "products", "blas"})
    EXPECT_FALSE(here.at(role).empty()) << role;
}

}  // namespace
}  // namespace lagwise
