#include "lagwise/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace lagwise::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Page made_page() {
  Chart chart{"loss", {"step"}, {"nats"}, {{"a </script><b>", {1, 2}, {3, NAN}}}};
  chart.series[0].low = {2, 2}, chart.series[0].high = {4, 4};
  Page page{"a < b & c", "", {"a </script><b>"}, {}, ""};
  page.sections.push_back({"Curves", "", {Charts{{chart}}, Paragraph{"x\u2028y\xff"}}});
  return page;
}

TEST(PageJson, HoldsNothingThatCouldEndItsScript) {
  const std::string json = page_json(made_page());
  EXPECT_THAT(json, Not(HasSubstr("<")));
  for (const char c : json) EXPECT_TRUE(c >= ' ' && c <= '~') << int(c);
}

TEST(PageJson, GivesBackWhatWasPutIn) {
  const Json json = Json::parse(page_json(made_page()));
  EXPECT_EQ(json["title"], "a < b & c");
  const Json& blocks = json["sections"][0]["blocks"];
  const Json& series = blocks[0]["charts"][0]["series"][0];
  EXPECT_EQ(series["label"], "a </script><b>");
  EXPECT_EQ(series["y"], Json::parse("[3, null]"));
  EXPECT_EQ(series["low"], Json::parse("[2, 2]"));
  EXPECT_EQ(blocks[1]["text"], "x\u2028y\ufffd");
}

TEST(PageJson, KeepsSixDigits) {
  Page page{"t", "", {}, {}, ""};
  Table table{"numbers", {{"a"}, {"b", "text"}}, {{1.23456789, "x"}, {kNothing, ""}}};
  page.sections.push_back({"", "", {table}});
  const Json json = Json::parse(page_json(page));
  EXPECT_EQ(json["sections"][0]["blocks"][0]["rows"],
            Json::parse(R"([[1.23457, "x"], [null, null]])"));
}

TEST(PageJson, HasSamplesWordForWord) {
  Page page{"t", "", {}, {}, ""};
  page.sections.push_back({"", "", {Samples{"Texts", {{"r", "To </b>", "be", "n"}}}}});
  const Json json = Json::parse(page_json(page));
  EXPECT_EQ(
      json["sections"][0]["blocks"][0]["samples"],
      Json::parse(R"([{"run": "r", "prompt": "To </b>", "text": "be", "note": "n"}])"));
}

TEST(PageJson, WritesMusicAsShortLists) {
  Roll roll{.run = "r", .beats = 4, .tempos = {{0, 96}}};
  roll.tracks = {{"bass", 33, false, {{0, 0.5, 40, 90}}}};
  Page page{"t", "", {}, {}, ""};
  page.sections.push_back({"", "", {Music{"Continuations", {{"prompt", {roll}}}}}});
  const Json json = Json::parse(page_json(page));
  const Json& made = json["sections"][0]["blocks"][0]["pieces"][0]["rolls"][0];
  EXPECT_EQ(made["tempos"], Json::parse("[[0, 96]]"));
  EXPECT_EQ(made["tracks"][0]["notes"], Json::parse("[[0, 0.5, 40, 90]]"));
}

TEST(PageJson, CarriesTheModelThatPlaysOn) {
  Roll roll{.run = "r", .beats = 4, .prompt_tokens = {7, 8}, .top_p = 0.9};
  const Roll silent{.run = "s", .beats = 4};
  Page page{"t", "", {}, {}, ""};
  page.sections.push_back({"", "", {Music{"Music", {{"prompt", {roll, silent}}}}}});
  EXPECT_FALSE(Json::parse(page_json(page)).contains("playOn"));
  page.play_on = PlayOn{"r", "\x01\x02\x03", "m"};
  const Json json = Json::parse(page_json(page));
  EXPECT_EQ(json["playOn"],
            Json::parse(R"({"run": "r", "module": "AQID", "model": "bQ=="})"));
  const Json& rolls = json["sections"][0]["blocks"][0]["pieces"][0]["rolls"];
  EXPECT_EQ(rolls[0]["tokens"], Json::parse("[7, 8]"));
  EXPECT_EQ(rolls[0]["sampling"], Json::parse(R"({"temperature": 1, "topP": 0.9})"));
  EXPECT_FALSE(rolls[1].contains("tokens"));
}

TEST(PageHtml, IsSelfContained) {
  const std::string html = page_html(made_page());
  EXPECT_THAT(html, HasSubstr("<title>a &lt; b &amp; c</title>"));
  EXPECT_THAT(html, HasSubstr("</html>"));
  EXPECT_THAT(html, HasSubstr("build(data)"));
  for (const char* fetches : {"src=", "<link", "@import", "url(h", "fetch(", "import("})
    EXPECT_THAT(html, Not(HasSubstr(fetches)));
  for (const char* word : {"@TITLE@", "@STYLE@", "@DATA@", "@SCRIPT@"})
    EXPECT_THAT(html, Not(HasSubstr(word)));
}

}  // namespace
}  // namespace lagwise::report
