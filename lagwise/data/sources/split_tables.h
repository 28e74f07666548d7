#pragma once

#include <string>

namespace lagwise::data {

/// The tables of a folder, by the names of their splits; empty: there is none.
struct SplitTables {
  std::string train, valid, test;
};

/// train, valid and test (data/sets/split_file.h), each with an ending of tables.
SplitTables find_split_tables(const std::string& folder);

}  // namespace lagwise::data
