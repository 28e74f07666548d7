#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lagwise::data {

/// The words a model knows, numbered from 0.
class Vocabulary {
 public:
  /// std::invalid_argument for a word given twice, or one with a line break.
  explicit Vocabulary(std::vector<std::string> words);
  Vocabulary(Vocabulary&&) = default;  // a copy would look words up in the original

  int32_t size() const { return static_cast<int32_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }
  bool holds(int32_t id) const { return id >= 0 && id < size(); }

  /// -1 for a word that is not in it.
  int32_t id(std::string_view word) const;
  /// std::invalid_argument for an id that is not in it.
  const std::string& word(int32_t id) const;

  /// FNV-1a over the words, each with a line feed after it (data/formats/fnv1a.h). A model
  /// keeps it, and refuses tokens of another vocabulary.
  uint64_t hash() const;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string_view, int32_t> ids_;  // views into words_
};

}  // namespace lagwise::data
