#include "lagwise/data/text/token_kind.h"

#include <gtest/gtest.h>

namespace lagwise::data {
namespace {

TEST(TokenKind, IsReadFromText) {
  EXPECT_EQ(parse_token_kind("byte").name, "byte");
  EXPECT_EQ(parse_token_kind("bpe:4096").name, "bpe");
  EXPECT_EQ(parse_token_kind("bpe:4096").vocabulary, 4096);
  EXPECT_EQ(parse_token_kind("word").vocabulary, 0);
  EXPECT_EQ(parse_token_kind("word:50").vocabulary, 50);
  for (const char* wrong : {"", "bpe", "bpe:", "bpe:255", "bpe:4k", "bpe:4096 ",
                            "words", "word:1", "byte:3", "bpe:1000001", "bpe:-1"})
    EXPECT_THROW(parse_token_kind(wrong), std::invalid_argument) << wrong;
}

TEST(TokenKind, LearnsItsTokenizer) {
  const auto read = [](const std::function<void(std::string_view)>& take) {
    take("one two one\n"), take("two three");
  };
  EXPECT_EQ(learn_tokenizer(parse_token_kind("byte"), read), nullptr);
  const auto pairs = learn_tokenizer(parse_token_kind("bpe:259"), read);
  EXPECT_EQ(pairs->kind(), "bpe");
  EXPECT_EQ(pairs->vocabulary(), 259);
  const auto words = learn_tokenizer(parse_token_kind("word"), read);
  EXPECT_EQ(words->kind(), "word");
  EXPECT_EQ(words->vocabulary(), 5);
}

}  // namespace
}  // namespace lagwise::data
