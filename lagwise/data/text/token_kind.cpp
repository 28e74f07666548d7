#include "lagwise/data/text/token_kind.h"

#include <charconv>
#include <stdexcept>

#include "lagwise/data/text/byte_pair_training.h"
#include "lagwise/data/text/word_level.h"

namespace lagwise::data {
namespace {

constexpr int64_t kMostTokens = 1000000;

[[noreturn]] void refuse_kind(const std::string& text) {
  throw std::invalid_argument(
      "expected byte, bpe:N with N from 256 to 1000000, word or word:N with N from 2 "
      "to "
      "1000000, got '" +
      text + "'");
}

}  // namespace

TokenKind parse_token_kind(const std::string& text) {
  if (text == "byte") return {"byte", 256};
  if (text == "word") return {"word", 0};
  const size_t colon = text.find(':');
  if (colon == text.npos) refuse_kind(text);
  TokenKind kind{text.substr(0, colon), 0};
  const char *first = text.data() + colon + 1, *last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, kind.vocabulary);
  const int64_t least = kind.name == "bpe" ? 256 : 2;
  if ((kind.name != "bpe" && kind.name != "word") || error != std::errc() ||
      end != last || kind.vocabulary < least || kind.vocabulary > kMostTokens)
    refuse_kind(text);
  return kind;
}

std::unique_ptr<Tokenizer> learn_tokenizer(
    const TokenKind& kind,
    const std::function<void(const std::function<void(std::string_view)>&)>& read) {
  if (kind.name == "bpe") {
    BytePairTraining training;
    read([&](std::string_view text) { training.read(text); });
    return std::make_unique<BytePairs>(training.learn(kind.vocabulary));
  }
  if (kind.name == "word") {
    WordCount count;
    read([&](std::string_view text) { count.read(text); });
    return std::make_unique<WordLevel>(count.words(kind.vocabulary));
  }
  return nullptr;
}

}  // namespace lagwise::data
