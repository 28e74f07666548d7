#pragma once

#include <string>
#include <vector>

#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {

inline constexpr size_t kMostUnpackedText = size_t{16} << 30;  ///< bytes of a .gz

/// A file of text: mapped as it is; one packed with gzip unpacked into memory; of
/// .jsonl (or .jsonl.gz) the texts at "text" of its lines, each ended by a line break.
/// DataError for a file that is no text (check_text).
class TextFile {
 public:
  explicit TextFile(const std::string& file);

  const std::string& name() const { return mapped_.name(); }
  Bytes bytes() const { return read_ ? Bytes(made_) : mapped_.bytes(); }
  /// The texts of .jsonl, one by one; of other files, all of it.
  std::vector<Bytes> rows() const;

 private:
  MappedFile mapped_;
  std::vector<uint8_t> made_;
  std::vector<size_t> row_ends_;  // of .jsonl, in made_
  bool read_ = false;             ///< `made_` is the text
};

/// DataError where bytes are no text that can be read: packed, in UTF-16, or neither UTF-8
/// nor without a byte 0 in the beginning, as pictures and programs are.
void check_text(const std::string& file, Bytes bytes);

/// Whether a file's name says that it is text of one of these kinds: .txt, .jsonl, or
/// either with .gz.
bool is_text_name(const std::string& file);

}  // namespace lagwise::data
