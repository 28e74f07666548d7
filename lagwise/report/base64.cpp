#include "lagwise/report/base64.h"

#include <algorithm>
#include <cstdint>

namespace lagwise::report {

std::string base64(std::string_view bytes) {
  static constexpr char kLetters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t here = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < here ? static_cast<uint8_t>(bytes[i + j]) : 0U);
    for (size_t j = 0; j < 4; ++j)
      text += j <= here ? kLetters[bits >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

}  // namespace lagwise::report
