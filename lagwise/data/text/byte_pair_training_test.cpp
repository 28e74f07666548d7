#include "lagwise/data/text/byte_pair_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "lagwise/data/text/byte_level.h"

namespace lagwise::data {
namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

Names merges_of(const BytePairs& pairs) {
  Names names;
  for (const auto& [left, right] : pairs.plan().merges)
    names.emplace_back(pairs.plan().tokens[static_cast<size_t>(left)],
                       pairs.plan().tokens[static_cast<size_t>(right)]);
  return names;
}

/// The definition: count all pairs anew before each merge.
Names naive(const std::string& text, size_t merges) {
  std::vector<std::string> order = byte_letters();
  std::ranges::sort(order);
  std::vector<std::vector<std::string>> pieces;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view piece = first_piece(rest);
    rest.remove_prefix(piece.size());
    pieces.emplace_back();
    for (const char byte : piece)
      pieces.back().push_back(byte_letters()[static_cast<uint8_t>(byte)]);
  }
  const auto id = [&](const std::string& token) {
    return std::ranges::find(order, token) - order.begin();
  };
  Names made;
  while (made.size() < merges) {
    std::map<std::pair<int64_t, int64_t>, int64_t> counts;
    for (const auto& piece : pieces)
      for (size_t i = 0; i + 1 < piece.size(); ++i)
        ++counts[{id(piece[i]), id(piece[i + 1])}];
    const auto best = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < 2) break;
    const std::string left = order[static_cast<size_t>(best->first.first)];
    const std::string right = order[static_cast<size_t>(best->first.second)];
    made.emplace_back(left, right);
    if (id(left + right) == std::ssize(order)) order.push_back(left + right);
    for (auto& piece : pieces)
      for (size_t i = 0; i + 1 < piece.size(); ++i)
        if (piece[i] == left && piece[i + 1] == right) {
          piece[i] += right;
          piece.erase(piece.begin() + static_cast<int64_t>(i) + 1);
        }
  }
  return made;
}

TEST(BytePairTraining, TakesTheMostFrequentPairFirst) {
  BytePairTraining training;
  training.read("aab aab aab cd");
  EXPECT_EQ(merges_of(training.learn(258)), (Names{{"a", "a"}, {"aa", "b"}}));
  EXPECT_EQ(training.learn(256).plan().merges.size(), 0u);
  EXPECT_THROW(training.learn(255), std::invalid_argument);
}

TEST(BytePairTraining, IsWhatCountingAnewGives) {
  std::mt19937 chance(3);
  for (const char* letters : {"ab", "aaab ", "abcdef  ", "\xC3\xA9 a'\n"}) {
    std::string text;
    const size_t many = std::string_view(letters).size();
    for (int i = 0; i < 600; ++i) text += letters[chance() % many];
    if (text.find(' ') == text.npos)  // else one piece, which training cuts
      for (size_t i = 40; i < text.size(); i += 41) text[i] = ' ';
    BytePairTraining training;
    training.read(text);
    const Names found = merges_of(training.learn(256 + 40));
    EXPECT_EQ(found, naive(text, found.size())) << letters;
    EXPECT_GE(found.size(), 20u);
  }
}

TEST(BytePairTraining, DoesNotDependOnTheOrderOfTexts) {
  BytePairTraining one, other;
  for (const char* text : {"some words", " and other words", "words of some others"})
    one.read(text);
  for (const char* text : {"words of some others", "some words", " and other words"})
    other.read(text);
  EXPECT_EQ(one.learn(300).json(), other.learn(300).json());
}

TEST(BytePairTraining, StopsWhereNoPairOccursTwice) {
  BytePairTraining training;
  training.read("abcd");
  EXPECT_EQ(training.learn(5000).vocabulary(), 256);
}

}  // namespace
}  // namespace lagwise::data
