#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// What a JSON text from outside may hold at most.
struct JsonLimits {
  size_t depth = 4;         ///< of objects and arrays in each other
  size_t values = 2000000;  ///< in all: the tree takes some 50 bytes for each
  size_t key_bytes = 1024;
  bool fractions = false;  ///< numbers that are not whole
};

/// The JSON in `text`, which stands at byte `start` of `file`. What JSON libraries
/// let through silently is a DataError here: a key given twice, deep nesting, a
/// fraction where only whole numbers are meant, a control character in a key.
nlohmann::json parse_strict_json(const std::string& file, size_t start, Bytes text,
                                 const JsonLimits& limits = {});

}  // namespace lagwise::data
