#include "lagwise/data/text/chrf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace lagwise::data {
namespace {

using Texts =
    std::vector<std::pair<std::u32string, std::u32string>>;  // written, wanted

/// The definition, on characters, n by n.
double definition(const Texts& texts) {
  const auto strings = [](std::u32string text, size_t n) {
    std::erase_if(text, [](char32_t c) { return c == U' ' || c == U'\n'; });
    std::map<std::u32string, int> all;
    for (size_t i = 0; i + n <= text.size(); ++i) ++all[text.substr(i, n)];
    return all;
  };
  double precision = 0, recall = 0;
  int orders = 0;
  for (size_t n = 1; n <= 6; ++n) {
    double both = 0, written = 0, wanted = 0;
    for (const auto& [one, other] : texts) {
      auto ours = strings(one, n), theirs = strings(other, n);
      if (theirs.empty()) continue;
      for (const auto& [text, count] : ours) {
        written += count;
        both += std::min(count, theirs.contains(text) ? theirs[text] : 0);
      }
      for (const auto& [text, count] : theirs) wanted += count;
    }
    if (written == 0 || wanted == 0) continue;
    precision += both / written, recall += both / wanted, ++orders;
  }
  if (orders == 0 || precision + recall == 0) return 0;
  precision /= orders, recall /= orders;
  return 100 * 5 * precision * recall / (4 * precision + recall);
}

double score(const std::string& written, const std::string& wanted) {
  ChrF chrf;
  chrf.add(written, wanted);
  return chrf.score();
}

TEST(ChrF, IsWhatItsDefinitionSays) {
  EXPECT_NEAR(score("the cat sat on a mat", "the cat is on the mat"),
              definition({{U"the cat sat on a mat", U"the cat is on the mat"}}), 1e-9);
  EXPECT_NEAR(score("aaaa", "aa"), definition({{U"aaaa", U"aa"}}), 1e-9);
  EXPECT_NEAR(score("Käse für zwölf", "Kase fur zwölf"),
              definition({{U"Käse für zwölf", U"Kase fur zwölf"}}), 1e-9);
  EXPECT_GT(score("Käse für zwölf", "Kase fur zwölf"), 10);
}

// What sacreBLEU 2.6.0 gives: CHRF().corpus_score([written ...], [[wanted ...]]).score
TEST(ChrF, IsThatOfSacreBleu) {
  struct Golden {
    std::vector<std::pair<std::string, std::string>> texts;  // written, wanted
    double score;
  };
  const std::vector<Golden> all = {
      {{{"the cat sat on a mat", "the cat is on the mat"}}, 37.03545302214975},
      {{{"Käse für zwölf Äpfel", "Kase fur zwölf Apfel"}}, 40.63483085541908},
      {{{"1995-02-20", "1955-02-20"},
        {"1998-03-03", "1998-03-03"},
        {"1", "12"},
        {"", "x"}},
       80.64082844113855},
      {{{"日本語の文章です。", "日本語の文です"}, {"привет, мир", "Привет мир!"}},
       44.37848471985757},
      // Nothing was wanted, or too little for longer strings.
      {{{"abcdefgh", ""}, {"ab", "abc"}, {"abc", "ab"}, {"x", "yz"}},
       55.762081784386616},
      // Blanks of Unicode, and one that only Python knows.
      {{{"naïve\u00a0café\u2003— 🎵🎶", "naive cafe - 🎵"},
        {"a\u3000b\x1c"
         "c\td",
         "abc d"}},
       38.45131525419004}};
  for (const Golden& golden : all) {
    ChrF chrf;
    for (const auto& [written, wanted] : golden.texts) chrf.add(written, wanted);
    EXPECT_NEAR(chrf.score(), golden.score, 1e-9) << golden.texts[0].first;
  }
}

TEST(ChrF, HandComputed) {
  // n = 1: 2 of 2 written, 2 of 3 wanted; n = 2: 1 of 1, 1 of 2; n = 3: nothing written.
  const double precision = 1, recall = (2.0 / 3 + 1.0 / 2) / 2;
  EXPECT_NEAR(score("ab", "abc"), 500 * precision * recall / (4 * precision + recall),
              1e-9);
}

TEST(ChrF, AddsUpTextsBeforeItDivides) {
  ChrF chrf;
  chrf.add("abcdefgh", "abcdefgh");
  chrf.add("x", "yz");
  EXPECT_NEAR(chrf.score(), definition({{U"abcdefgh", U"abcdefgh"}, {U"x", U"yz"}}),
              1e-9);
}

TEST(ChrF, RunsFromNothingToAll) {
  EXPECT_EQ(score("abc def", "abc def"), 100);
  EXPECT_EQ(score("a bc", "ab c"), 100);  // blanks do not count
  EXPECT_EQ(score("abc", "xyz"), 0);
  EXPECT_EQ(score("", "xyz"), 0);
  EXPECT_EQ(ChrF().score(), 0);
  EXPECT_EQ(score("\xFF\xFE", "\xFF\xFE"), 100);  // no UTF-8
}

TEST(ChrF, CountsWhatIsMissingMoreThanWhatIsTooMuch) {
  EXPECT_GT(score("abcdefgh", "abcd"), score("abcd", "abcdefgh"));
}

}  // namespace
}  // namespace lagwise::data
