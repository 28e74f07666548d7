#include "lagwise/runtime/words.h"

#include <nlohmann/json.hpp>

namespace lagwise::runtime {

std::vector<std::string> words_of(const lagwise_model* model) {
  const auto json = nlohmann::json::parse(lagwise_words(model), nullptr, false);
  return json.is_array() ? json.get<std::vector<std::string>>()
                         : std::vector<std::string>();
}

}  // namespace lagwise::runtime
