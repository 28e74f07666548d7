#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lagwise/cli/encodings/table.h"
#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string contents(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(EncodingsVerb, KeepsTheReadmeOfTheFolder) {
  EXPECT_EQ(lagwise({"encodings", "--markdown"}).out,
            contents(std::string(LAGWISE_SOURCE_DIR) + "/lagwise/encodings/README.md"))
      << "make it anew with: lagwise encodings --markdown > "
         "lagwise/encodings/README.md";
}

TEST(EncodingsVerb, PrintsARowForEachAsJson) {
  const Outcome outcome = lagwise({"encodings", "--json"});
  EXPECT_EQ(outcome.code, 0);
  const auto array = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(array.size(), encodings().size());
  for (const auto& row : array)
    for (const char* key :
         {"name", "summary", "paper", "options", "exact", "linear_causal",
          "linear_full", "stage", "denominator", "dims", "stochastic", "longest"})
      EXPECT_TRUE(row.contains(key)) << row["name"] << " " << key;
}

TEST(EncodingsVerb, PrintsATableOfAll) {
  const Outcome outcome = lagwise({"encodings"});
  EXPECT_EQ(outcome.code, 0);
  for (const EncodingRow& row : encodings())
    EXPECT_THAT(outcome.out, HasSubstr("\n" + std::string(row.name) + " "));
}

TEST(EncodingsShow, DrawsEveryEncoding) {
  for (const EncodingRow& row : encodings()) {
    const Outcome outcome =
        lagwise({"encodings", "show", std::string(row.text()), "--length", "16",
                 "--heads", "2", "--dim", "8", "--draws", "3"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("kernel by lag")) << row.name;
    EXPECT_THAT(outcome.out, HasSubstr("Over 16 positions")) << row.name;
    EXPECT_THAT(outcome.out, Not(HasSubstr("nan"))) << row.name;
  }
}

TEST(EncodingsShow, TakesEveryNameOfTheTable) {
  for (const char* name : {"rope", "huang", "learned"}) {  // others: as they are above
    const Outcome outcome =
        lagwise({"encodings", "show", name, "--heads", "1", "--dim", "4"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_THAT(lagwise({"encodings", "show", "rope", "--length", "16"}).out,
              HasSubstr("rope:layout=half: kernel by lag"));
}

/// The last lag of the table is the largest power of 4 below the reach.
TEST(EncodingsShow, DrawsATableToItsEnd) {
  for (const char* text : {"huang:max=300", "learned:max=300"}) {
    const Outcome outcome = lagwise(
        {"encodings", "show", text, "--length", "512", "--heads", "1", "--dim", "4"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\n     256")) << text;  // halving stops at 256
    EXPECT_THAT(outcome.out, Not(HasSubstr("\n    1024"))) << text;
  }
}

TEST(EncodingsVerb, SaysHowManyAxesAnEncodingTakesWithAnyOptions) {
  for (const EncodingFacts& facts : encoding_facts()) {
    const bool grid = facts.name == "conv_spe" || facts.name == "lrpe" ||
                      facts.name == "none" || facts.name == "rope";
    EXPECT_EQ(facts.axes, grid ? 3 : 1) << facts.name;
  }
}

TEST(EncodingsVerb, KeepsItsColumnsStraight) {
  std::stringstream table(lagwise({"encodings"}).out);
  std::string head, row;
  std::getline(table, head);
  const size_t what = head.find("what"), exact = head.find("exact");
  for (size_t i = 0; i < encodings().size() && std::getline(table, row); ++i) {
    EXPECT_EQ(row[exact - 1], ' ') << row;
    EXPECT_NE(row[exact], ' ') << row;
    EXPECT_EQ(row[what - 1], ' ') << row;
    EXPECT_NE(row[what], ' ') << row;
  }
}

TEST(EncodingsShow, WritesOneSelfContainedPage) {
  const std::string file = ::testing::TempDir() + "encodings_show.html";
  const Outcome outcome =
      lagwise({"encodings", "show", "decay:kind=alibi", "--html", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = contents(file);
  EXPECT_THAT(page, HasSubstr("kernel by lag"));
  EXPECT_THAT(page, HasSubstr("head 3"));
  std::remove(file.c_str());
}

TEST(EncodingsShow, RefusesAnUnknownEncodingInOneLine) {
  const Outcome outcome = lagwise({"encodings", "show", "ropee:layout=half"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("unknown encoding 'ropee'; did you mean 'rope'?"));
  EXPECT_EQ(lagwise({"encodings", "show"}).code, 2);
}

}  // namespace
}  // namespace lagwise::cli
