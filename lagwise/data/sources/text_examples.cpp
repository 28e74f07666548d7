#include "lagwise/data/sources/text_examples.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/sets/split_dealer.h"
#include "lagwise/data/sets/text_file.h"
#include "lagwise/data/sources/acl_imdb.h"
#include "lagwise/data/sources/split_tables.h"

namespace lagwise::data {
namespace {

constexpr size_t kMostLabels = 1000;

Example example_of(std::string_view text, int label) {
  const Bytes bytes = bytes_of(text);
  return {label, {bytes.begin(), bytes.end()}, {}};
}

void read_reviews(const TextReading& reading, const VisitExample& visit) {
  const auto train = list_acl_imdb(reading.path, "train");
  const auto test = is_there(reading.path + "/test")
                        ? list_acl_imdb(reading.path, "test")
                        : std::vector<Review>();
  const auto all = static_cast<double>(train.size() + test.size());
  int64_t read = 0;
  const auto visit_one = [&](const std::string& split, const Review& review) {
    const MappedFile file(review.file);
    check_text(review.file, file.bytes());
    visit(split, example_of(text_of(file.bytes()), review.label),
          static_cast<double>(++read) / all);
  };
  SplitDealer dealer(reading.valid, 0);
  for (const Review& review : train) visit_one(dealer.next(), review);
  for (const Review& review : test) visit_one("test", review);
}

/// The whole number that a label is; -1: it is none.
int64_t label_number(std::string_view label) {
  int64_t number = -1;
  const auto [end, error] =
      std::from_chars(label.data(), label.data() + label.size(), number);
  const bool whole = error == std::errc() && end == label.data() + label.size();
  return whole && std::to_string(number) == label ? number : -1;
}

/// Tables whose labels are the classes of the first one.
class LabelledTables {
 public:
  LabelledTables(const TextReading& reading, const std::string& train)
      : columns_{text_column(reading.text_column), label_column(reading.label_column)} {
    TextColumns table(train, columns_);
    std::set<std::string> labels;
    for (std::vector<std::string> row; table.next(row);) {
      if (row[1].empty()) table.fail("a label, got an empty field");
      labels.insert(row[1]);
      if (labels.size() > kMostLabels)
        table.fail("at most 1000 different labels, got one more: is '" +
                   row[1].substr(0, 40) + "' a label?");
    }
    if (labels.empty()) throw DataError(train, -1, "rows of labelled text, got none");
    names_.assign(labels.begin(), labels.end());
    if (std::ranges::all_of(names_,
                            [](const auto& name) { return label_number(name) >= 0; }))
      std::ranges::sort(names_, {}, label_number);
    if (names_.size() < 2)
      throw DataError(train, -1,
                      "at least two different labels, got '" + names_[0] + "'");
  }

  const std::vector<std::string>& names() const { return names_; }

  void read(const std::string& file, const std::function<std::string()>& split,
            const VisitExample& visit) const {
    TextColumns table(file, columns_);
    for (std::vector<std::string> row; table.next(row);) {
      const auto found = std::ranges::find(names_, row[1]);
      if (found == names_.end())
        table.fail("a label of the training rows, got '" + row[1].substr(0, 40) + "'");
      visit(split(), example_of(row[0], static_cast<int>(found - names_.begin())), -1);
    }
  }

 private:
  std::vector<Column> columns_;
  std::vector<std::string> names_;
};

}  // namespace

Column text_column(const std::string& asked) {
  return {asked, {"text", "sentence", "review", "content"}};
}

Column label_column(const std::string& asked) {
  return {asked, {"label", "target", "class", "sentiment"}};
}

std::vector<std::string> read_text_examples(const TextReading& reading,
                                            const VisitExample& visit) {
  const std::string& path = reading.path;
  if (!is_folder(path)) {
    const LabelledTables tables(reading, path);
    SplitDealer dealer(reading.valid, reading.test);
    tables.read(
        path, [&] { return dealer.next(); }, visit);
    return tables.names();
  }
  if (is_there(path + "/train/pos")) {
    read_reviews(reading, visit);
    return {"neg", "pos"};
  }
  const auto [train, valid, test] = find_split_tables(path);
  if (train.empty())
    throw DataError(
        path, -1,
        "train/pos and train/neg, or train.tsv, .csv or .jsonl, in the folder");
  const LabelledTables tables(reading, train);
  SplitDealer dealer(valid.empty() ? reading.valid : 0, 0);
  tables.read(
      train, [&] { return dealer.next(); }, visit);
  for (const auto& [file, split] : {std::pair(valid, "valid"), {test, "test"}})
    if (!file.empty())
      tables.read(
          file, [&, name = split] { return name; }, visit);
  return tables.names();
}

}  // namespace lagwise::data
