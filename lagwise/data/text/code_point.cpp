#include "lagwise/data/text/code_point.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace lagwise::data {
namespace {

struct CodeRange {
  uint32_t first, last;
};

#include "lagwise/data/text/letter_ranges.inc"

bool lies_in(std::span<const CodeRange> ranges, uint32_t code) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &CodeRange::first);
  return after != ranges.begin() && code <= std::prev(after)->last;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const uint32_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  const CodePoint none{lead, 1, false};
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return none;
  uint32_t code = lead & (0x7FU >> bytes);
  for (uint32_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xC0) != 0x80) return none;
    code = code << 6 | (next & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return none;
  return {code, bytes, true};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (!point.valid) return false;
    text.remove_prefix(point.bytes);
  }
  return true;
}

bool begins_as_utf8(std::string_view text, size_t most) {
  constexpr size_t kLongest = 4;  // bytes of a character
  if (text.size() <= most) return is_utf8(text);
  for (size_t cut = 0; cut < kLongest && cut <= most; ++cut)
    if (is_utf8(text.substr(0, most - cut))) return true;
  return false;
}

void append_utf8(std::string& text, uint32_t code) {
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

bool is_letter(uint32_t code) {
  if (code < 0x80) return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
  return lies_in(kLetters, code);
}

bool is_number(uint32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return lies_in(kNumbers, code);
}

bool is_blank(uint32_t code) {
  constexpr CodeRange kBlanks[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},
                                   {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                                   {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                   {0x3000, 0x3000}};
  return lies_in(kBlanks, code);
}

}  // namespace lagwise::data
