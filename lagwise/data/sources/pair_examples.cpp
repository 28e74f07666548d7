#include "lagwise/data/sources/pair_examples.h"

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/sets/split_dealer.h"
#include "lagwise/data/sources/split_tables.h"

namespace lagwise::data {
namespace {

/// `split` is asked once for every row.
void read_table(const PairReading& reading, const std::string& file,
                const std::function<std::string()>& split, const VisitPair& visit) {
  TextColumns table(file, {source_column(reading.source_column),
                           target_column(reading.target_column)});
  bool any = false;
  for (std::vector<std::string> row; table.next(row); any = true) {
    if (row[0].empty()) table.fail("a source, got an empty field");
    if (row[1].empty()) table.fail("a target, got an empty field");
    const std::string name = split();
    visit({name, row[0], row[1], file, table.row()});
  }
  if (!any) throw DataError(file, -1, "rows with a source and a target, got none");
}

std::vector<int32_t> tokens_of(std::string_view text) {
  const Bytes bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Column source_column(const std::string& asked) {
  return {asked, {"source", "src", "input"}};
}

Column target_column(const std::string& asked) {
  return {asked, {"target", "tgt", "output"}};
}

void read_pairs(const PairReading& reading, const VisitPair& visit) {
  if (!is_folder(reading.path)) {
    SplitDealer dealer(reading.valid, reading.test);
    return read_table(
        reading, reading.path, [&] { return dealer.next(); }, visit);
  }
  const SplitTables files = find_split_tables(reading.path);
  if (files.train.empty())
    throw DataError(reading.path, -1, "train.tsv, .csv or .jsonl in the folder");
  SplitDealer dealer(files.valid.empty() ? reading.valid : 0, 0);
  read_table(
      reading, files.train, [&] { return dealer.next(); }, visit);
  if (!files.valid.empty())
    read_table(
        reading, files.valid, [] { return "valid"; }, visit);
  if (!files.test.empty())
    read_table(
        reading, files.test, [] { return "test"; }, visit);
}

Example pair_example(const Pair& pair) {
  return {0, tokens_of(pair.source), tokens_of(pair.target)};
}

}  // namespace lagwise::data
