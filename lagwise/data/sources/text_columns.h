#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// A column that somebody wants: by the name they gave, else the first of the usual
/// names that a table has.
struct Column {
  std::string asked;
  std::vector<std::string> usual;
};

/// Chosen columns of a table, row by row:
///
///     .csv     a header; commas, or semicolons or tabs where the header has no comma;
///              fields in double quotes may hold anything (RFC 4180)
///     .jsonl   an object a line; numbers, true and false are taken as their text
///     others   a header; tabs, no quotes
///
/// each also packed with gzip, as .csv.gz. A byte order mark, as spreadsheets write it, is
/// passed over. Every text is UTF-8; a column that is wanted stands there once.
/// What is wrong is a DataError with the file, the row (the header is row 1) and the
/// byte where that begins.
class TextColumns {
 public:
  TextColumns(const std::string& file, std::vector<Column> columns);
  /// Over bytes in memory, which must outlive this object; `name` as that of a file.
  TextColumns(const std::string& name, Bytes bytes, std::vector<Column> columns);
  ~TextColumns();

  bool next(std::vector<std::string>& texts);  ///< one for each column; false: the end
  int64_t row() const;                         ///< the number of the row just read
  [[noreturn]] void fail(const std::string& expected) const;  ///< refuses that row

  class Rows;  ///< one of the formats

 private:
  struct File;
  std::unique_ptr<File> file_;
  std::vector<uint8_t> unpacked_;
  std::unique_ptr<Rows> rows_;
};

/// How the names of such tables end: .tsv, .csv, .jsonl, and each with .gz.
const std::vector<std::string>& table_endings();
bool is_table_name(const std::string& file);

/// Whether it is one of objects: .jsonl, or that with .gz.
bool is_json_table_name(const std::string& file);

}  // namespace lagwise::data
