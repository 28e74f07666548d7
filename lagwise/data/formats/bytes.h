#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lagwise::data {

/// Bytes somebody else owns.
using Bytes = std::span<const uint8_t>;

inline Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace lagwise::data
