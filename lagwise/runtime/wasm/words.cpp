#include "lagwise/runtime/wasm/words.h"

#include <nlohmann/json.hpp>

#include "lagwise/data/formats/strict_json.h"

namespace lagwise::runtime {

std::vector<std::string> words_of(const lagwise_model* model) {
  const std::string text = lagwise_words(model);
  std::vector<std::string> words;
  if (text.empty()) return words;
  const nlohmann::json json =
      data::parse_strict_json("the words of the model", 0, data::bytes_of(text));
  if (!json.is_object() || !json.contains("words")) return words;
  for (const auto& word : json["words"])
    if (const auto* name = word.get_ptr<const std::string*>()) words.push_back(*name);
  return words;
}

}  // namespace lagwise::runtime
