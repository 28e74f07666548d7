#include "lagwise/data/formats/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using lagwise::testing::data_error;
using ::testing::HasSubstr;

nlohmann::json parse(const std::string& text, const JsonLimits& limits = {}) {
  return parse_strict_json("a.json", 100, bytes_of(text), limits);
}

std::string complaint(const std::string& text, const JsonLimits& limits = {}) {
  return data_error([&] { parse(text, limits); });
}

TEST(StrictJson, ReadsWhatTheLibraryReads) {
  const std::string text =
      R"({"a": [1, -2, [3, {"b": null}]], "c": true, "d": "x\u00e9", "e": {}, "f": []})";
  EXPECT_EQ(parse(text), nlohmann::json::parse(text));
  EXPECT_EQ(parse("[18446744073709551615]")[0].get<uint64_t>(), UINT64_MAX);
  JsonLimits limits;
  limits.fractions = true;
  EXPECT_EQ(parse("[0.5]", limits)[0], 0.5);
}

TEST(StrictJson, RefusesAKeyGivenTwice) {
  EXPECT_THAT(complaint(R"({"a": 1, "a": 2})"),
              HasSubstr("byte 111: expected each key once, got 'a' twice"));
  EXPECT_THAT(complaint(R"({"a": {"b": 1, "\u0062": 2}})"), HasSubstr("'b' twice"));
  EXPECT_EQ(complaint(R"({"a": {"b": 1}, "b": 2})"), "(no error)");
}

TEST(StrictJson, RefusesDepth) {
  EXPECT_EQ(complaint("[[[[]]]]"), "(no error)");
  EXPECT_THAT(complaint("[[[[[]]]]]"), HasSubstr("byte 104: expected at most 4"));
  EXPECT_THAT(complaint(std::string(100000, '[')), HasSubstr("at most 4"));
}

TEST(StrictJson, RefusesFractionsAndNumbersBeyond64Bits) {
  for (const char* text :
       {"[1.0]", "[1e3]", "[18446744073709551616]", "[-9223372036854775809]"})
    EXPECT_THAT(complaint(text), HasSubstr("a whole number")) << text;
}

TEST(StrictJson, RefusesTooMuch) {
  JsonLimits limits;
  limits.values = 3;
  EXPECT_EQ(complaint("[1,2]", limits), "(no error)");
  EXPECT_THAT(complaint("[1,2,3]", limits), HasSubstr("at most 3 values"));
  EXPECT_THAT(complaint("{\"" + std::string(1025, 'k') + "\": 1}"),
              HasSubstr("a key of"));
  EXPECT_THAT(complaint(R"({"a\nb": 1})"), HasSubstr("without control characters"));
}

TEST(StrictJson, SaysWhereItIsNotJson) {
  EXPECT_THAT(complaint(""), HasSubstr("byte 100: expected JSON"));
  EXPECT_THAT(complaint("[1,]"), HasSubstr("byte 103: expected JSON"));
  for (const char* text : {"{", "[1,]", "{} x", "nan", "\"\xff\"", "[1]]"})
    EXPECT_THAT(complaint(text), HasSubstr("expected JSON")) << text;
}

}  // namespace
}  // namespace lagwise::data
