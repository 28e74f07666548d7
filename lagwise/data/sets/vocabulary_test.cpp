#include "lagwise/data/sets/vocabulary.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/data/formats/fnv1a.h"

namespace lagwise::data {
namespace {

TEST(Vocabulary, NumbersItsWords) {
  const Vocabulary words({"a", "b", ""});
  EXPECT_EQ(words.size(), 3);
  EXPECT_EQ(words.id("b"), 1);
  EXPECT_EQ(words.id("c"), -1);
  EXPECT_EQ(words.word(2), "");
  EXPECT_THROW(words.word(3), std::invalid_argument);
  EXPECT_THROW(words.word(-1), std::invalid_argument);
}

TEST(Vocabulary, KeepsItsWordsWhenMoved) {
  Vocabulary first({"short", "a word too long to be stored inside the string itself"});
  const Vocabulary second = std::move(first);
  EXPECT_EQ(second.id("short"), 0);
  EXPECT_EQ(second.id(second.word(1)), 1);
}

TEST(Vocabulary, RefusesAWordTwice) {
  EXPECT_THROW(Vocabulary({"a", "a"}), std::invalid_argument);
  EXPECT_THROW(Vocabulary({"a\nb"}), std::invalid_argument);
}

TEST(Vocabulary, HashesWordsAndTheirOrder) {
  EXPECT_EQ(Vocabulary({"ab", "c"}).hash(), fnv1a(bytes_of("ab\nc\n")));
  EXPECT_NE(Vocabulary({"a", "bc"}).hash(), Vocabulary({"ab", "c"}).hash());
  EXPECT_NE(Vocabulary({"c", "ab"}).hash(), Vocabulary({"ab", "c"}).hash());
}

}  // namespace
}  // namespace lagwise::data
