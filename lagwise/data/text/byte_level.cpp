#include "lagwise/data/text/byte_level.h"

#include <unordered_map>

#include "lagwise/data/text/code_point.h"

namespace lagwise::data {
namespace {

enum class Sign { kLetter, kNumber, kBlank, kOther };

Sign sign_of(const CodePoint& point) {
  if (!point.valid) return Sign::kOther;
  if (is_letter(point.code)) return Sign::kLetter;
  if (is_number(point.code)) return Sign::kNumber;
  return is_blank(point.code) ? Sign::kBlank : Sign::kOther;
}

size_t ending(std::string_view text) {
  for (const std::string_view one : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(one)) return one.size();
  return 0;
}

/// How many bytes from `at` on belong to signs of one kind; `last`: bytes of the last.
size_t run(std::string_view text, size_t at, Sign kind, size_t* last = nullptr) {
  const size_t start = at;
  while (at < text.size()) {
    const CodePoint point = first_code_point(text.substr(at));
    if (sign_of(point) != kind) break;
    if (last) *last = point.bytes;
    at += point.bytes;
  }
  return at - start;
}

std::vector<std::string> make_byte_letters() {
  std::vector<std::string> letters(256);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    append_utf8(letters[byte], visible ? byte : next++);
  }
  return letters;
}

}  // namespace

const std::vector<std::string>& byte_letters() {
  static const std::vector<std::string> letters = make_byte_letters();
  return letters;
}

std::string to_byte_letters(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) letters += byte_letters()[static_cast<uint8_t>(byte)];
  return letters;
}

std::optional<std::string> from_byte_letters(std::string_view letters) {
  static const auto bytes = [] {
    std::unordered_map<std::string_view, char> map;
    for (size_t i = 0; i < 256; ++i) map[byte_letters()[i]] = static_cast<char>(i);
    return map;
  }();
  std::string text;
  while (!letters.empty()) {
    const size_t size = first_code_point(letters).bytes;
    const auto found = bytes.find(letters.substr(0, size));
    if (found == bytes.end()) return std::nullopt;
    text.push_back(found->second);
    letters.remove_prefix(size);
  }
  return text;
}

std::string_view first_piece(std::string_view text) {
  if (const size_t size = ending(text)) return text.substr(0, size);
  const size_t skip = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Sign kind = sign_of(first_code_point(text.substr(skip)));
  if (kind != Sign::kBlank) return text.substr(0, skip + run(text, skip, kind));
  size_t last = 0;
  const size_t blanks = run(text, 0, Sign::kBlank, &last);
  const bool keeps_last = blanks < text.size() && blanks > last;
  return text.substr(0, keeps_last ? blanks - last : blanks);
}

}  // namespace lagwise::data
