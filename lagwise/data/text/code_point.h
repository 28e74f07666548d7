#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lagwise::data {

/// The character at the front of some UTF-8. What is no UTF-8 (a stray or missing
/// continuation, an overlong form, a surrogate) is one byte that stands for none.
struct CodePoint {
  uint32_t code = 0;
  uint32_t bytes = 1;
  bool valid = false;
};

/// Of a text that is not empty.
CodePoint first_code_point(std::string_view text);

bool is_utf8(std::string_view text);

/// Whether the first `most` bytes are, but for a last character that they cut through.
bool begins_as_utf8(std::string_view text, size_t most);

/// Appends a character as UTF-8.
void append_utf8(std::string& text, uint32_t code);

bool is_letter(uint32_t code);  ///< Unicode's categories L*
bool is_number(uint32_t code);  ///< N*
bool is_blank(uint32_t code);   ///< what Unicode calls White_Space

}  // namespace lagwise::data
