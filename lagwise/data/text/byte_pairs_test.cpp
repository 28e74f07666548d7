#include "lagwise/data/text/byte_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lagwise/data/text/byte_level.h"
#include "lagwise/data/text/byte_pair_training.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

/// The 256 bytes, then what the merges make of them.
BytePairs::Plan plan_of(
    const std::vector<std::pair<std::string, std::string>>& merges) {
  BytePairs::Plan plan;
  plan.tokens = byte_letters();
  const auto id = [&](const std::string& token) {
    return static_cast<int32_t>(std::ranges::find(plan.tokens, token) -
                                plan.tokens.begin());
  };
  for (const auto& [left, right] : merges) {
    plan.merges.emplace_back(id(left), id(right));
    if (id(left + right) == std::ssize(plan.tokens))
      plan.tokens.push_back(left + right);
  }
  return plan;
}

std::string decoded(const Tokenizer& tokenizer, const Ids& ids) {
  std::string text;
  for (const int32_t id : ids) text += tokenizer.decode(id);
  return text;
}

/// The definition, without cleverness: again and again the pair whose merge comes first
/// in the list, at its leftmost place.
Ids naive(const BytePairs::Plan& plan, std::string_view piece) {
  std::vector<std::string> parts;
  for (const char byte : piece)
    parts.push_back(byte_letters()[static_cast<uint8_t>(byte)]);
  for (bool merged = true; merged;) {
    merged = false;
    for (size_t rank = 0; rank < plan.merges.size() && !merged; ++rank)
      for (size_t i = 0; i + 1 < parts.size() && !merged; ++i) {
        const auto& [left, right] = plan.merges[rank];
        if (parts[i] != plan.tokens[static_cast<size_t>(left)] ||
            parts[i + 1] != plan.tokens[static_cast<size_t>(right)])
          continue;
        parts[i] += parts[i + 1];
        parts.erase(parts.begin() + static_cast<int64_t>(i) + 1);
        merged = true;
      }
  }
  Ids ids;
  for (const std::string& part : parts)
    ids.push_back(static_cast<int32_t>(std::ranges::find(plan.tokens, part) -
                                       plan.tokens.begin()));
  return ids;
}

TEST(BytePairs, MergesInTheOrderOfTheList) {
  const BytePairs pairs(plan_of({{"b", "c"}, {"a", "b"}, {"a", "bc"}}));
  EXPECT_EQ(pairs.encode("abc"), (Ids{258}));
  EXPECT_EQ(pairs.encode("ab"), (Ids{257}));
  EXPECT_EQ(pairs.encode("bcab"), (Ids{256, 257}));
  EXPECT_EQ(pairs.encode("abcab"), (Ids{258, 257}));
  EXPECT_TRUE(pairs.encode("").empty());
  EXPECT_EQ(pairs.vocabulary(), 259);
}

TEST(BytePairs, AreWhatTheDefinitionGives) {
  std::mt19937 chance(1);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "abcab "[chance() % 6];
  BytePairTraining training;
  training.read(text);
  const BytePairs pairs = training.learn(300);
  EXPECT_GT(pairs.plan().merges.size(), 20u);
  for (int length = 1; length < 60; ++length) {
    std::string piece;
    for (int i = 0; i < length; ++i) piece += "abc"[chance() % 3];
    ASSERT_EQ(pairs.encode(piece), naive(pairs.plan(), piece)) << piece;
  }
}

TEST(BytePairs, GiveAnyBytesBack) {
  BytePairTraining training;
  training.read("the cat sat on the mat; the rat sat on that cat\n");
  const BytePairs pairs = training.learn(300);
  std::mt19937 chance(2);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(chance() % 256));
    ASSERT_EQ(decoded(pairs, pairs.encode(text)), text);
  }
  const std::string run(100000, 'a');  // one piece: must not take the square of that
  EXPECT_EQ(decoded(pairs, pairs.encode(run)), run);
}

TEST(BytePairs, DoNotDependOnHowMuchIsTakenAtOnce) {
  BytePairTraining training;
  training.read("one  two \n\n three's   four\n five");
  BytePairs::Plan plan = training.learn(270).plan();
  plan.tokens.push_back("<|end|>");
  plan.added = {{static_cast<int32_t>(plan.tokens.size()) - 1, "<|end|>", true}};
  const BytePairs pairs(plan);
  const std::string text = "one two <|end|> three's\n\n  four<|end|><|end|>five  ";
  const Ids whole = pairs.encode(text);
  for (size_t bytes = 1; bytes < 20; ++bytes) {
    std::string_view rest = text;
    Ids ids;
    while (!rest.empty()) pairs.encode_front(rest, bytes, ids);
    ASSERT_EQ(ids, whole);
  }
  EXPECT_EQ(std::ranges::count(whole, plan.added[0].id), 3);
  EXPECT_EQ(decoded(pairs, whole), text);
}

TEST(BytePairs, TakeTheLongestOfTheAddedTokensAtAPlace) {
  BytePairs::Plan plan = plan_of({});
  for (const char* text : {"<x>", "<x", "<x>>"}) {
    plan.added.push_back({static_cast<int32_t>(plan.tokens.size()), text, true});
    plan.tokens.push_back(text);
  }
  const BytePairs pairs(plan);
  EXPECT_EQ(pairs.encode("a<x>b"), (Ids{'a', 256, 'b'}));
  EXPECT_EQ(pairs.encode("<x>><xb<x>"), (Ids{258, 257, 'b', 256}));
}

TEST(BytePairs, TakeAWholePieceWhereToldTo) {
  BytePairs::Plan plan = plan_of({{"a", "b"}});
  plan.tokens.push_back("abc");
  EXPECT_EQ(BytePairs(plan).encode("abc"), (Ids{256, 'c'}));
  plan.whole_pieces = true;
  EXPECT_EQ(BytePairs(plan).encode("abc abcd"), (Ids{257, ' ', 256, 'c', 'd'}));
}

TEST(BytePairs, RefuseWhatDoesNotHoldTogether) {
  const auto refusal = [](const BytePairs::Plan& plan) -> std::string {
    try {
      BytePairs{plan};
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "(nothing)";
  };
  BytePairs::Plan plan = plan_of({{"a", "b"}});
  plan.tokens.pop_back();
  EXPECT_THAT(refusal(plan),
              HasSubstr("what a merge makes in the vocabulary, got 'ab'"));
  plan = plan_of({});
  plan.tokens.back() = "a";
  EXPECT_THAT(refusal(plan), HasSubstr("each token once and none empty, got 'a'"));
  plan = plan_of({});
  plan.tokens.back() = "zz";
  EXPECT_THAT(refusal(plan), HasSubstr("each of the 256 bytes, got none for 255"));
  plan = plan_of({});
  plan.merges = {{1, 999}};
  EXPECT_THAT(refusal(plan), HasSubstr("merges of tokens"));
  plan = plan_of({});
  plan.tokens.push_back("a b");
  EXPECT_THAT(refusal(plan), HasSubstr("letters of bytes, got 'a b'"));
  EXPECT_THROW(BytePairs(plan_of({})).decode(256), std::out_of_range);
}

}  // namespace
}  // namespace lagwise::data
