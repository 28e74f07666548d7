#pragma once

#include <nlohmann/json_fwd.hpp>

namespace lagwise::data {

// How tokenizer.json says what words are (data/text/word_level.h): the reader of such
// files takes no other way.

inline constexpr const char* kEndOfLine = "<eos>";

nlohmann::ordered_json word_level_normalizer();  ///< an end of line is a word
nlohmann::ordered_json word_level_split();       ///< at blanks

}  // namespace lagwise::data
