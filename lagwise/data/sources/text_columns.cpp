#include "lagwise/data/sources/text_columns.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/delimited.h"
#include "lagwise/data/formats/gunzip.h"
#include "lagwise/data/formats/json_lines.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/sets/text_file.h"
#include "lagwise/data/text/code_point.h"

namespace lagwise::data {

class TextColumns::Rows {
 public:
  virtual ~Rows() = default;
  virtual bool next(std::vector<std::string>& texts) = 0;
  virtual int64_t row() const = 0;
  virtual DataError refusal(const std::string& expected) const = 0;  ///< of that row
};

struct TextColumns::File {
  explicit File(MappedFile file) : mapped(std::move(file)) {}
  MappedFile mapped;
};

namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";  // byte order mark, in UTF-8

/// What the column may be called, the best first.
std::vector<std::string> legal_names(const Column& column) {
  return column.asked.empty() ? column.usual : std::vector{column.asked};
}

std::string names_of(const Column& column) {
  if (!column.asked.empty()) return "'" + column.asked + "'";
  std::string names;
  for (const std::string& name : column.usual)
    names += (names.empty() ? "" : ", ") + name;
  return "one of " + names;
}

/// How a .csv is delimited, from its first line.
Delimiting csv_delimiting(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  for (const char delimiter : {',', ';', '\t'})
    if (line.find(delimiter) != line.npos) return {delimiter, true};
  return {',', true};
}

class DelimitedRows : public TextColumns::Rows {
 public:
  DelimitedRows(const std::string& file, Bytes bytes, Delimiting how,
                const std::vector<Column>& columns)
      : file_(file),
        skipped_(text_of(bytes).starts_with(kMark) ? kMark.size() : 0),
        reader_(file, bytes.subspan(skipped_), how) {
    if (!read()) throw DataError(file, -1, "a table with a header, got nothing");
    for (const Column& column : columns)
      places_.push_back(place(column, how.delimiter));
  }

  bool next(std::vector<std::string>& texts) override {
    if (!read()) return false;
    texts.clear();
    for (const size_t at : places_) texts.push_back(fields_[at]);
    return true;
  }
  int64_t row() const override { return row_; }
  DataError refusal(const std::string& expected) const override {
    return refusal_at(static_cast<int64_t>(reader_.row_offset() + skipped_), expected);
  }

 private:
  DataError refusal_at(int64_t offset, const std::string& expected) const {
    return {file_ + ", row " + std::to_string(row_), offset, expected};
  }

  bool read() {
    ++row_;
    try {
      return reader_.next(fields_);
    } catch (const DataError& error) {
      const std::string what = error.what();
      throw refusal_at(error.offset() + static_cast<int64_t>(skipped_),
                       what.substr(what.find("expected ") + 9));
    }
  }

  size_t place(const Column& column, char delimiter) const {
    for (const std::string& name : legal_names(column)) {
      const auto many = std::ranges::count(fields_, name);
      if (many > 1)
        throw refusal("one column named '" + name + "', got " + std::to_string(many));
      if (many == 1)
        return static_cast<size_t>(std::ranges::find(fields_, name) - fields_.begin());
    }
    std::string all;
    for (const std::string& field : fields_)
      if (all.size() < 200) all += (all.empty() ? "" : ", ") + field.substr(0, 40);
    for (char& c : all)
      if (static_cast<uint8_t>(c) < 0x20) c = '?';
    const std::string between = delimiter == ','   ? "commas"
                                : delimiter == ';' ? "semicolons"
                                                   : "tabs";
    throw refusal("a header with a column named " + names_of(column) + ", with " +
                  between + " between; got " + all);
  }

  std::string file_;
  size_t skipped_;
  DelimitedReader reader_;
  std::vector<std::string> fields_;
  std::vector<size_t> places_;
  int64_t row_ = 0;
};

class JsonRows : public TextColumns::Rows {
 public:
  JsonRows(const std::string& file, Bytes bytes, std::vector<Column> columns)
      : reader_(file, bytes), columns_(std::move(columns)) {}

  bool next(std::vector<std::string>& texts) override {
    nlohmann::json row;
    if (!reader_.next(row)) return false;
    texts.clear();
    for (const Column& column : columns_) texts.push_back(text(row, column));
    return true;
  }
  int64_t row() const override { return reader_.line(); }
  DataError refusal(const std::string& expected) const override {
    return reader_.refusal(expected);
  }

 private:
  std::string text(const nlohmann::json& row, const Column& column) const {
    for (const std::string& name : legal_names(column)) {
      const auto found = row.find(name);
      if (found == row.end()) continue;
      if (found->is_string()) return found->get<std::string>();
      if (found->is_number() || found->is_boolean()) return found->dump();
      throw refusal("a text at '" + name + "'");
    }
    throw refusal("an object with a text at " + names_of(column));
  }

  JsonLines reader_;
  std::vector<Column> columns_;
};

}  // namespace

TextColumns::TextColumns(const std::string& name, Bytes bytes,
                         std::vector<Column> columns) {
  if (is_gzip(bytes)) bytes = unpacked_ = gunzip(name, bytes, kMostUnpackedText);
  check_text(name, bytes);
  if (is_json_table_name(name)) {
    rows_ = std::make_unique<JsonRows>(name, bytes, std::move(columns));
    return;
  }
  const Delimiting how = name.ends_with(".csv") || name.ends_with(".csv.gz")
                             ? csv_delimiting(text_of(bytes))
                             : Delimiting{'\t', false};
  rows_ = std::make_unique<DelimitedRows>(name, bytes, how, columns);
}

TextColumns::TextColumns(const std::string& file, std::vector<Column> columns) {
  auto opened = std::make_unique<File>(MappedFile(file));
  TextColumns within(file, opened->mapped.bytes(), std::move(columns));
  rows_ = std::move(within.rows_), unpacked_ = std::move(within.unpacked_);
  file_ = std::move(opened);
}

TextColumns::~TextColumns() = default;

bool TextColumns::next(std::vector<std::string>& texts) {
  if (!rows_->next(texts)) return false;
  for (const std::string& text : texts)
    if (!is_utf8(text)) fail("text in UTF-8 (iconv can change other encodings to it)");
  return true;
}

int64_t TextColumns::row() const { return rows_->row(); }

void TextColumns::fail(const std::string& expected) const {
  throw rows_->refusal(expected);
}

const std::vector<std::string>& table_endings() {
  static const std::vector<std::string> endings = {".tsv",    ".csv",    ".jsonl",
                                                   ".tsv.gz", ".csv.gz", ".jsonl.gz"};
  return endings;
}

bool is_table_name(const std::string& file) {
  return std::ranges::any_of(table_endings(), [&](const std::string& ending) {
    return file.ends_with(ending);
  });
}

bool is_json_table_name(const std::string& file) {
  return file.ends_with(".jsonl") || file.ends_with(".jsonl.gz");
}

}  // namespace lagwise::data
