#pragma once

#include <string>

namespace lagwise::data {

/// The tables of a folder, by the names of their splits; empty: there is none.
struct SplitTables {
  std::string train, valid, test;
};

/// train, valid (or val, dev) and test, each with .tsv, .csv or .jsonl.
SplitTables find_split_tables(const std::string& folder);

}  // namespace lagwise::data
