#include "lagwise/data/text/word_level.h"

#include <gtest/gtest.h>

namespace lagwise::data {
namespace {

using Ids = std::vector<int32_t>;

std::string decoded(const Tokenizer& tokenizer, const Ids& ids) {
  std::string text;
  for (const int32_t id : ids) text += tokenizer.decode(id);
  return text;
}

TEST(WordLevel, CountsTheMostFrequentWordsFirst) {
  WordCount count;
  count.read("b a b <unk>\n a b c \xFF\n");
  const WordLevel words = count.words(0);
  EXPECT_EQ(words.vocabulary(), 5);  // <unk> <eos> b a c; what is no UTF-8 is not
  EXPECT_EQ(words.encode("b a c d\n\xFF"), (Ids{2, 3, 4, 0, 1, 0}));
  EXPECT_EQ(count.words(3).vocabulary(), 3);
  EXPECT_EQ(count.words(3).encode("a b"), (Ids{0, 2}));
  EXPECT_THROW(count.words(1), std::invalid_argument);
}

TEST(WordLevel, GivesWikiTextBackAsItWas) {
  const std::string text = " \n = A title = \n \n It is <unk> , he said . \n";
  WordCount count;
  count.read(text);
  const WordLevel words = count.words(0);
  EXPECT_EQ(decoded(words, words.encode(text)), text);
  EXPECT_EQ(words.unknown(), 0);
  EXPECT_TRUE(words.encode("").empty());
  EXPECT_TRUE(words.encode(" \t ").empty());
}

TEST(WordLevel, DoesNotDependOnHowMuchIsTakenAtOnce) {
  WordCount count;
  const std::string text = "one two\r\n\n three  four\t five ";
  count.read(text);
  const WordLevel words = count.words(0);
  for (size_t bytes = 1; bytes < 10; ++bytes) {
    std::string_view rest = text;
    Ids ids;
    while (!rest.empty()) words.encode_front(rest, bytes, ids);
    ASSERT_EQ(ids, words.encode(text));
  }
}

TEST(WordLevel, NeedsItsTwoOwnWords) {
  EXPECT_THROW(WordLevel({"<unk>", "a"}), std::invalid_argument);
  EXPECT_THROW(WordLevel({"<unk>", "<eos>", "a", "a"}), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::data
