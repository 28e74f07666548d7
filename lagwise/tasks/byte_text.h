#pragma once

#include "lagwise/data/formats/bytes.h"
#include "lagwise/tasks/token_text.h"

namespace lagwise {

/// Tokens are bytes.
struct ByteText : TokenText {
  std::vector<int64_t> encode(const std::string& text) const override {
    const data::Bytes bytes = data::bytes_of(text);
    return {bytes.begin(), bytes.end()};
  }
  std::string decode(const std::vector<int64_t>& tokens) const override {
    return {tokens.begin(), tokens.end()};
  }
};

}  // namespace lagwise
