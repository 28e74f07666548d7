#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// One key of a TOML file with its value, as our files use them: words, numbers, yes
/// or no, lists of whole numbers.
struct TomlEntry {
  using Value = std::variant<std::string, int64_t, double, bool, std::vector<int64_t>>;
  std::string key;  ///< with the tables it stands in: "train.steps"
  Value value;
  int64_t line = 0;  ///< of the value, from 1
};

/// Every entry of a TOML text (toml.io) that stands in `file`, by line. Whatever is no
/// TOML, or a value of another kind (a date, a list of words), is a DataError with the
/// line in the place of the offset: "a.toml, line 3: expected ...".
///
/// Requires  at most 1 MB, tables at most 8 deep.
std::vector<TomlEntry> read_toml(const std::string& file, Bytes text);

/// Text as TOML writes it, quoted.
std::string toml_text(const std::string& text);

}  // namespace lagwise::data
