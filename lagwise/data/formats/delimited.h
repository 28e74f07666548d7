#pragma once

#include <string>
#include <vector>

#include "lagwise/data/formats/byte_cursor.h"

namespace lagwise::data {

/// How a table is written as text.
struct Delimiting {
  char delimiter = '\t';
  /// A field in double quotes may hold anything; inside, "" is a quote (RFC 4180).
  /// Without, a quote is a letter like any other.
  bool quotes = false;
};

/// Reads rows of text fields, one at a time. Lines end in LF or CRLF; the last one
/// may lack it. Every row has as many fields as the first: another number is a
/// DataError at the row, as are a quote that never closes and a field above 16 MB.
class DelimitedReader {
 public:
  DelimitedReader(const std::string& name, Bytes bytes, Delimiting how);

  /// False at the end. `row` is the only memory that grows.
  bool next(std::vector<std::string>& row);

  /// The place of a column by its name in a header row; DataError lists the others.
  static size_t column(const std::vector<std::string>& header, const std::string& name,
                       const std::string& file);

  size_t row_offset() const { return row_start_; }  ///< of the row just read

  /// Refuses the row just read.
  [[noreturn]] void fail(const std::string& expected) const {
    cursor_.fail_at(row_start_, expected);
  }

 private:
  enum class Stop { kField, kRow };
  Stop read_field(std::string& field);
  Stop read_quoted(std::string& field);
  void append(std::string& field, char c) const;

  ByteCursor cursor_;
  Delimiting how_;
  size_t columns_ = 0, row_start_ = 0;
};

}  // namespace lagwise::data
