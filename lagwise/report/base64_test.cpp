#include "lagwise/report/base64.h"

#include <gtest/gtest.h>

namespace lagwise::report {
namespace {

// The test vectors of RFC 4648, section 10, and bytes that are no letters.
TEST(Base64, HasTheLettersOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string("\0\xff\xfe", 3)), "AP/+");
}

}  // namespace
}  // namespace lagwise::report
