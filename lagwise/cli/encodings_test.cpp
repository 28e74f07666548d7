#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lagwise/cli/encodings_table.h"
#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Outcome lagwise(std::vector<std::string> words) {
  return run_captured({add_encodings}, std::move(words));
}

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
