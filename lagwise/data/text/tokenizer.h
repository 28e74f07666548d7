#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

inline constexpr const char* kTokenizerFile = "tokenizer.json";  ///< of a prepared set

/// How text becomes tokens, kept as the `tokenizer.json` that Hugging Face's
/// `tokenizers` reads and writes. Two kinds are known: byte pairs
/// (data/text/byte_pairs.h) and words (data/text/word_level.h).
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string kind() const = 0;  ///< "bpe" or "word"
  virtual int64_t vocabulary() const = 0;

  /// The token that stands for what is not in the vocabulary; -1: everything is.
  virtual int32_t unknown() const { return -1; }

  /// Encodes the front of `rest`, about `bytes` of it or all there is, and takes it
  /// away. However a text is eaten up, the tokens are the same.
  virtual void encode_front(std::string_view& rest, size_t bytes,
                            std::vector<int32_t>& ids) const = 0;
  std::vector<int32_t> encode(std::string_view text) const;

  /// The bytes of a token; those of several are the bytes of each, joined.
  /// std::out_of_range for an id outside the vocabulary.
  virtual std::string decode(int32_t id) const = 0;

  /// The contents of tokenizer.json.
  virtual std::string json() const = 0;

  /// FNV-1a over them: who reads tokens made with one wants the same again.
  uint64_t hash() const;
};

/// The tokens of a text whose bytes are given as numbers.
template <class Number>
std::vector<int32_t> encode_bytes(const Tokenizer& tokenizer,
                                  const std::vector<Number>& bytes) {
  return tokenizer.encode(std::string(bytes.begin(), bytes.end()));
}

/// DataError names `file` and the entry that is missing, wrong, or asks for something
/// that is not done here, such as another kind of model.
std::unique_ptr<Tokenizer> parse_tokenizer(const std::string& file, Bytes text);
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& file);

}  // namespace lagwise::data
