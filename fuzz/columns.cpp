#include <cstdlib>

#include "lagwise/core/errors.h"
#include "lagwise/data/sources/pair_examples.h"

/// Any bytes are a table with the columns of labelled texts or of pairs, or a DataError;
/// the first byte chooses the format and the columns.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  if (size == 0) return 0;
  constexpr const char* kNames[] = {"a.csv", "a.tsv", "a.jsonl"};
  const bool pairs = data[0] >= '3';
  const std::vector<Column> columns =
      pairs ? std::vector<Column>{source_column(), target_column()}
            : std::vector<Column>{{"", {"text", "sentence"}}, {"", {"label"}}};
  try {
    TextColumns table(kNames[data[0] % 3], {data + 1, size - 1}, columns);
    int64_t before = 0;
    for (std::vector<std::string> row; table.next(row); before = table.row())
      if (row.size() != columns.size() || table.row() <= before) std::abort();
  } catch (const lagwise::DataError&) {
  }
  return 0;
}
