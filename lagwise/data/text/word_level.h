#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lagwise/data/text/tokenizer.h"

namespace lagwise::data {

/// Words between blanks as WikiText's perplexity counts them: an end of line is the
/// word <eos>, and what the vocabulary does not hold is <unk>. Decoding puts a blank
/// before each word and before each end of line: WikiText's files come back as they
/// were, of other texts the kind of blanks is lost.
class WordLevel : public Tokenizer {
 public:
  /// std::invalid_argument unless each word is there once, <unk> and <eos> among them.
  explicit WordLevel(std::vector<std::string> words);

  std::string kind() const override { return "word"; }
  int64_t vocabulary() const override { return static_cast<int64_t>(words_.size()); }
  int32_t unknown() const override { return unknown_; }
  void encode_front(std::string_view& rest, size_t bytes,
                    std::vector<int32_t>& ids) const override;
  std::string decode(int32_t id) const override;
  std::string json() const override;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string_view, int32_t> ids_;  ///< views into words_
  int32_t unknown_ = 0, end_ = 0;
};

/// Counts words, to make a vocabulary of them.
class WordCount {
 public:
  void read(std::string_view text);

  /// The most frequent ones, of those that occur as often the first by their bytes;
  /// `most`: tokens in all, <unk> and <eos> among them; 0: every word. Words that are
  /// no UTF-8 are left out, for no tokenizer.json could hold them.
  WordLevel words(int64_t most) const;

 private:
  std::unordered_map<std::string, int64_t> counts_;
};

}  // namespace lagwise::data
