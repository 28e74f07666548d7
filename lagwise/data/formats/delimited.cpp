#include "lagwise/data/formats/delimited.h"

namespace lagwise::data {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20, kMostFields = 1024;

}  // namespace

DelimitedReader::DelimitedReader(const std::string& name, Bytes bytes, Delimiting how)
    : cursor_(name, bytes), how_(how) {}

bool DelimitedReader::next(std::vector<std::string>& row) {
  row.clear();
  if (cursor_.done()) return false;
  row_start_ = cursor_.offset();
  for (Stop stop = Stop::kField; stop == Stop::kField;) {
    if (row.size() == kMostFields) fail("at most 1024 fields in a row");
    row.emplace_back();
    const bool quoted = how_.quotes && !cursor_.done() && cursor_.peek("field") == '"';
    stop = quoted ? read_quoted(row.back()) : read_field(row.back());
  }
  if (columns_ == 0) columns_ = row.size();
  if (row.size() != columns_)
    fail(std::to_string(columns_) + " fields as in the first row, got " +
         std::to_string(row.size()));
  return true;
}

void DelimitedReader::append(std::string& field, char c) const {
  if (field.size() == kMostBytes) fail("fields of at most 16 MB");
  field.push_back(c);
}

DelimitedReader::Stop DelimitedReader::read_field(std::string& field) {
  while (!cursor_.done()) {
    const char c = static_cast<char>(cursor_.byte("field"));
    if (c == how_.delimiter) return Stop::kField;
    if (c == '\n') {
      if (!field.empty() && field.back() == '\r') field.pop_back();
      return Stop::kRow;
    }
    append(field, c);
  }
  return Stop::kRow;
}

DelimitedReader::Stop DelimitedReader::read_quoted(std::string& field) {
  cursor_.byte("quote");
  for (;;) {
    if (cursor_.done()) fail("a closing quote in the row that begins here");
    const char c = static_cast<char>(cursor_.byte("field"));
    if (c != '"') {
      append(field, c);
      continue;
    }
    if (cursor_.done() || cursor_.peek("field") != '"') break;
    cursor_.byte("quote");
    append(field, '"');
  }
  std::string rest;
  const size_t after = cursor_.offset();
  const Stop stop = read_field(rest);
  if (!rest.empty() && rest != "\r")
    cursor_.fail_at(after, "the end of the field after its closing quote");
  return stop;
}

size_t DelimitedReader::column(const std::vector<std::string>& header,
                               const std::string& name, const std::string& file) {
  std::string all;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) return i;
    if (all.size() < 200) all += (i > 0 ? ", " : "") + header[i].substr(0, 40);
  }
  for (char& c : all)
    if (static_cast<uint8_t>(c) < 0x20) c = '?';
  throw DataError(file, 0, "a column '" + name + "' in the first row, got " + all);
}

}  // namespace lagwise::data
