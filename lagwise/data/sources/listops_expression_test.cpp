#include "lagwise/data/sources/listops_expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/data/sources/lra_tables.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using namespace lagwise::testing;

int value(const std::string& text) { return listops_value(listops_symbols(text)); }

TEST(ListopsExpression, KeepsBracketsAndDropsParentheses) {
  EXPECT_THAT(listops_symbols("( ( ( [MAX 0 ) 9 ) ] )"), ElementsAre(12, 1, 10, 15));
  EXPECT_THAT(listops_symbols("[MIN [MED [SM"), ElementsAre(11, 13, 14));
  EXPECT_THROW(listops_symbols("[MAX 10 ]"), std::invalid_argument);
}

TEST(ListopsExpression, HasAValue) {
  EXPECT_EQ(value("7"), 7);
  EXPECT_EQ(value("[MIN 4 2 9 ]"), 2);
  EXPECT_EQ(value("[MAX 4 2 9 ]"), 9);
  EXPECT_EQ(value("[MED 4 2 9 ]"), 4);
  EXPECT_EQ(value("[MED 4 7 9 2 ]"), 5);  // 5.5
  EXPECT_EQ(value("[SM 4 7 9 ]"), 0);
  EXPECT_EQ(value("[MAX 2 [SM 4 [MIN 1 3 ] ] 3 ]"), 5);
}

TEST(ListopsExpression, RefusesHalfAnExpression) {
  for (const char* text : {"", "[MAX 1 2", "1 ]", "]", "[MAX ]", "1 2", "[MAX"})
    EXPECT_THROW(value(text), std::invalid_argument) << text;
  const std::vector<int32_t> padded = {1, 0};
  EXPECT_THROW(listops_value(padded), std::invalid_argument);
}

TEST(ListopsExpression, AgreesWithEveryOfficialLabel) {
  const TempFolder scratch;
  const std::string folder = real_data("listops", scratch);
  LAGWISE_NEEDS_DATA(folder, "listops");
  int wrong = 0;
  for (const char* name : {"/basic_sample.tsv", "/nangia_bowman_test_d20s.tsv"})
    each_listops_row(folder + name, [&](std::string_view text, int label) {
      wrong += listops_value(listops_symbols(text)) != label;
    });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lagwise::data
