#include "lagwise/data/sources/text_examples.h"

#include <algorithm>
#include <filesystem>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/delimited.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/sets/split_dealer.h"
#include "lagwise/data/sources/acl_imdb.h"
#include "lagwise/data/sources/lra_tables.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

Example example_of(std::string_view text, int label) {
  const Bytes bytes = bytes_of(text);
  return {label, {bytes.begin(), bytes.end()}, {}};
}

void read_reviews(const TextReading& reading, const VisitExample& visit) {
  const auto train = list_acl_imdb(reading.path, "train");
  const auto test = fs::exists(reading.path + "/test")
                        ? list_acl_imdb(reading.path, "test")
                        : std::vector<Review>();
  const auto all = static_cast<double>(train.size() + test.size());
  int64_t read = 0;
  const auto visit_one = [&](const std::string& split, const Review& review) {
    const MappedFile file(review.file);
    visit(split, example_of(text_of(file.bytes()), review.label),
          static_cast<double>(++read) / all);
  };
  SplitDealer dealer(reading.valid, 0);
  for (const Review& review : train) visit_one(dealer.next(), review);
  for (const Review& review : test) visit_one("test", review);
}

/// The column that was asked for, else the first of `usual` the header has.
std::string column_of(const std::string& file, const std::vector<std::string>& header,
                      const std::string& asked, const std::vector<std::string>& usual) {
  if (!asked.empty()) return asked;
  std::string names;
  for (const std::string& name : usual) {
    if (std::ranges::find(header, name) != header.end()) return name;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw DataError(file, 0, "a header with a column named one of " + names);
}

std::vector<std::string> header_of(const std::string& file) {
  const MappedFile mapped(file);
  const Delimiting how =
      file.ends_with(".csv") ? Delimiting{',', true} : Delimiting{'\t', false};
  std::vector<std::string> row;
  DelimitedReader(file, mapped.bytes(), how).next(row);
  return row;
}

void read_table(const TextReading& reading, const std::string& file,
                const std::function<std::string()>& split, const VisitExample& visit) {
  const auto header = header_of(file);
  const std::string text = column_of(file, header, reading.text_column,
                                     {"text", "sentence", "review", "content"});
  const std::string label = column_of(file, header, reading.label_column,
                                      {"label", "target", "class", "sentiment"});
  const int64_t rows = each_labelled_row(
      file, text, label,
      [&](std::string_view one, int is) { visit(split(), example_of(one, is), -1); });
  if (rows == 0) throw DataError(file, -1, "rows of labelled text, got none");
}

/// The file of a split, by any of its names; empty: none.
std::string table_of(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const char* ending : {".tsv", ".csv"})
      if (const std::string file = folder + "/" + name + ending; fs::exists(file))
        return file;
  return "";
}

}  // namespace

void read_text_examples(const TextReading& reading, const VisitExample& visit) {
  const std::string& path = reading.path;
  if (!fs::is_directory(path)) {
    SplitDealer dealer(reading.valid, reading.test);
    return read_table(
        reading, path, [&] { return dealer.next(); }, visit);
  }
  if (fs::exists(path + "/train/pos")) return read_reviews(reading, visit);
  const std::string train = table_of(path, {"train"});
  const std::string valid = table_of(path, {"valid", "val", "dev"});
  const std::string test = table_of(path, {"test"});
  if (train.empty())
    throw DataError(path, -1,
                    "train/pos and train/neg, or train.tsv or .csv, in the folder");
  SplitDealer dealer(valid.empty() ? reading.valid : 0, 0);
  read_table(
      reading, train, [&] { return dealer.next(); }, visit);
  if (!valid.empty())
    read_table(
        reading, valid, [] { return "valid"; }, visit);
  if (!test.empty())
    read_table(
        reading, test, [] { return "test"; }, visit);
}

}  // namespace lagwise::data
