#pragma once

#include <memory>
#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/data/sets/examples.h"
#include "lagwise/data/text/tokenizer.h"
#include "lagwise/tasks/classification.h"

namespace lagwise {

/// What a set of examples was prepared with; nullptr: its tokens are bytes. DataError
/// where the tokenizer beside the set is another.
inline std::unique_ptr<data::Tokenizer> set_tokenizer(const std::string& folder,
                                                      const data::ExampleSet& set) {
  const std::string hash = set.info("tokenizer");
  if (hash.empty()) return nullptr;
  const std::string file = folder + "/" + data::kTokenizerFile;
  auto tokenizer = data::load_tokenizer(file);
  if (hash != data::hash_text(tokenizer->hash()) ||
      tokenizer->vocabulary() != set.number("vocabulary"))
    throw DataError(file, -1, "the tokenizer that the set was made with");
  return tokenizer;
}

/// Its vocabulary and what its tokens stand for, where they are not bytes.
inline void take_set_tokenizer(const std::string& folder, const data::ExampleSet& set,
                               ClassificationFacts& facts) {
  const auto tokenizer = set_tokenizer(folder, set);
  if (!tokenizer) return;
  facts.vocabulary = tokenizer->vocabulary();
  facts.tokenizer = tokenizer->json();
}

}  // namespace lagwise
