#include "lagwise/cli/terminal/utf8.h"

#include <cstdint>

namespace lagwise::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// What one character is made of: how many bytes, and what its second byte may be.
/// (Table 3-7 of the Unicode standard: no overlong forms, no surrogates.)
struct Form {
  size_t bytes;  ///< 0: no character begins so
  uint8_t low = 0x80, high = 0xBF;
};

Form form_of(uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2 || lead > 0xF4) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {4};
}

bool shows(uint8_t byte) {
  return byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7F);
}

/// How many bytes of `text` from `at` on fit the form of a character.
size_t fitting(std::string_view text, size_t at, const Form& form) {
  size_t n = 1;
  while (n < form.bytes && at + n < text.size()) {
    const auto byte = static_cast<uint8_t>(text[at + n]);
    const uint8_t low = n == 1 ? form.low : 0x80, high = n == 1 ? form.high : 0xBF;
    if (byte < low || byte > high) break;
    ++n;
  }
  return n;
}

}  // namespace

std::string Utf8::feed(std::string_view bytes) {
  held_ += bytes;
  std::string shown;
  size_t at = 0;
  while (at < held_.size()) {
    const auto lead = static_cast<uint8_t>(held_[at]);
    const Form form = form_of(lead);
    const size_t fits = fitting(held_, at, form);
    if (form.bytes > fits && at + fits == held_.size()) break;  // more may come
    const bool whole = form.bytes == fits && (form.bytes > 1 || shows(lead));
    shown += whole ? std::string_view(held_).substr(at, fits) : kReplacement;
    at += fits;
  }
  held_.erase(0, at);
  return shown;
}

std::string Utf8::finish() {
  const bool cut = !held_.empty();
  held_.clear();
  return std::string(cut ? kReplacement : "");
}

std::string shown_text(std::string_view bytes) {
  Utf8 text;
  const std::string shown = text.feed(bytes);
  return shown + text.finish();
}

}  // namespace lagwise::cli
