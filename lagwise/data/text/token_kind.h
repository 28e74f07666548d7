#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lagwise/data/text/tokenizer.h"

namespace lagwise::data {

/// What the tokens of a text are to be:
///
///     byte        its bytes
///     bpe:4096    byte pairs, 4096 tokens in all (data/text/byte_pair_training.h)
///     word        every word of the training text (data/text/word_level.h)
///     word:30000  its most frequent words, 30,000 tokens in all
struct TokenKind {
  std::string name = "byte";
  int64_t vocabulary = 256;  ///< 0: as many as there are
};

/// std::invalid_argument lists what is legal.
TokenKind parse_token_kind(const std::string& text);

/// The tokenizer of a kind, learned from the texts that `read` hands over; nullptr for
/// bytes, which need none.
std::unique_ptr<Tokenizer> learn_tokenizer(
    const TokenKind& kind,
    const std::function<void(const std::function<void(std::string_view)>&)>& read);

}  // namespace lagwise::data
