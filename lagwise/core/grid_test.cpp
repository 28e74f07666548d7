#include "lagwise/core/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace lagwise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Grid, IsAListOfSpecs) {
  EXPECT_THAT(expand_grid("--encodings", "none"), ElementsAre("none"));
  EXPECT_THAT(expand_grid("--encodings", " none ; rope:layout=half"),
              ElementsAre("none", "rope:layout=half"));
}

TEST(Grid, ExpandsBracesFromLeftToRight) {
  EXPECT_THAT(expand_grid("x", "a:k={1,2},m={x,y}"),
              ElementsAre("a:k=1,m=x", "a:k=1,m=y", "a:k=2,m=x", "a:k=2,m=y"));
  EXPECT_THAT(expand_grid("x", "b;{a, c}:k=1;d"),
              ElementsAre("b", "a:k=1", "c:k=1", "d"));
}

TEST(Grid, KeepsOptionsInsideAnOptionTogether) {
  EXPECT_THAT(
      expand_grid("x", "linear:map=favor:features={64,128};norms=sqrt_d,eps=0;exact"),
      ElementsAre("linear:map=favor:features=64;norms=sqrt_d,eps=0",
                  "linear:map=favor:features=128;norms=sqrt_d,eps=0", "exact"));
}

TEST(Grid, HasEachSpecOnce) {
  EXPECT_THAT(expand_grid("x", "a;b:k={1,2,1};a"), ElementsAre("a", "b:k=1", "b:k=2"));
}

std::string message(std::string_view text) {
  try {
    expand_grid("--encodings", text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Grid, SaysWhichPartIsWrong) {
  EXPECT_EQ(message("a;;b"),
            "--encodings: expected a name between every two ';' in 'a;;b'");
  EXPECT_THAT(message(""), HasSubstr("expected a name"));
  EXPECT_EQ(message("a;b:k={1,2"),
            "--encodings: expected a partner to every brace in 'b:k={1,2'");
  EXPECT_THAT(message("a:k=1}"), HasSubstr("a partner to every brace"));
  EXPECT_THAT(message("a:k={1,{2}}"), HasSubstr("no brace inside another"));
  EXPECT_THAT(message("a:k={1,}"), HasSubstr("no empty choice"));
  EXPECT_THAT(message("a:k={}"), HasSubstr("no empty choice"));
}

TEST(NameForFile, StandsForOneTextOnly) {
  EXPECT_EQ(name_for_file("lrpe:lambda=unitary,p=odd_even"),
            "lrpe+lambda=unitary,p=odd_even");
  EXPECT_EQ(name_for_file("a/b c;d+e%"), "a%2Fb%20c%3Bd%2Be%25");
  EXPECT_NE(name_for_file("a:b"), name_for_file("a+b"));
}

}  // namespace
}  // namespace lagwise
