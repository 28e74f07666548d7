#include "lagwise/data/sets/vocabulary.h"

#include <stdexcept>
#include <utility>

#include "lagwise/data/formats/fnv1a.h"

namespace lagwise::data {

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_) {
    if (word.find('\n') != std::string::npos)
      throw std::invalid_argument("vocabulary: expected words without line breaks");
    if (!ids_.emplace(word, static_cast<int32_t>(ids_.size())).second)
      throw std::invalid_argument("vocabulary: expected each word once, got '" + word +
                                  "' twice");
  }
}

int32_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? -1 : found->second;
}

const std::string& Vocabulary::word(int32_t id) const {
  if (!holds(id))
    throw std::invalid_argument("vocabulary: expected an id below " +
                                std::to_string(size()) + ", got " + std::to_string(id));
  return words_[static_cast<size_t>(id)];
}

uint64_t Vocabulary::hash() const {
  uint64_t hash = kFnv1aStart;
  for (const std::string& word : words_)
    hash = fnv1a(bytes_of("\n"), fnv1a(bytes_of(word), hash));
  return hash;
}

}  // namespace lagwise::data
