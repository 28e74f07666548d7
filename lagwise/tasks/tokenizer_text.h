#pragma once

#include <memory>

#include "lagwise/data/text/tokenizer.h"
#include "lagwise/tasks/token_text.h"

namespace lagwise {

/// The tokenizer that a model was saved with.
inline std::unique_ptr<data::Tokenizer> saved_tokenizer(const std::string& json) {
  return data::parse_tokenizer("the tokenizer of the model", data::bytes_of(json));
}

/// Tokens of a tokenizer (data/text/tokenizer.h).
class TokenizerText : public TokenText {
 public:
  explicit TokenizerText(std::shared_ptr<const data::Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  std::vector<int64_t> encode(const std::string& text) const override {
    const std::vector<int32_t> ids = tokenizer_->encode(text);
    return {ids.begin(), ids.end()};
  }
  std::string decode(const std::vector<int64_t>& tokens) const override {
    std::string text;
    for (const int64_t token : tokens)
      text += tokenizer_->decode(static_cast<int32_t>(token));
    return text;
  }

 private:
  std::shared_ptr<const data::Tokenizer> tokenizer_;
};

}  // namespace lagwise
