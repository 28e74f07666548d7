#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise::data {

// Byte-level text as GPT-2 has it (Radford et al., 2019), which Hugging Face's
// `tokenizers` calls ByteLevel: text is cut into pieces, and the bytes of a piece are
// written with 256 visible characters, so that tokens can stand in a JSON file.

/// The characters of the 256 bytes as UTF-8: a byte that is visible in Latin-1 stands
/// for itself, and the others, in their order, are U+0100, U+0101, ...: a blank is
/// U+0120.
const std::vector<std::string>& byte_letters();

/// Bytes in those letters, and back; nothing where a letter is not among them.
std::string to_byte_letters(std::string_view bytes);
std::optional<std::string> from_byte_letters(std::string_view letters);

/// The first piece of a text that is not empty. Pieces are, whichever comes first in
/// this list,
///
///     's 't 're 've 'm 'll 'd           the endings of English
///     letters, numbers, or signs        as many as follow; a blank before them is
///                                       taken along
///     blanks, at most all but the last  before something else: the last one belongs
///     or a single one                   to what follows, if it is U+0020
///
/// What is no UTF-8 counts as signs. Whatever the text, its pieces joined are the text.
std::string_view first_piece(std::string_view text);

}  // namespace lagwise::data
