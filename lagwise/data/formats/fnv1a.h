#pragma once

#include <cstdint>
#include <string>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo), resumable:
///
///     h <- (h xor byte) * 1099511628211 mod 2^64, from h = 14695981039346656037
///
/// It finds damage and mix-ups. It is no defence against forgery.
constexpr uint64_t kFnv1aStart = 14695981039346656037u;

inline uint64_t fnv1a(Bytes bytes, uint64_t hash = kFnv1aStart) {
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

/// As sixteen hexadecimal digits, the form in which files hold it.
inline std::string hash_text(uint64_t hash) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; hash >>= 4)
    text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace lagwise::data
