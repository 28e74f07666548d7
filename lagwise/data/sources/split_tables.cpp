#include "lagwise/data/sources/split_tables.h"

#include "lagwise/data/sets/split_file.h"
#include "lagwise/data/sources/text_columns.h"

namespace lagwise::data {

SplitTables find_split_tables(const std::string& folder) {
  const auto table_of = [&](const char* split) {
    return find_split_file(folder, split, table_endings());
  };
  return {table_of("train"), table_of("valid"), table_of("test")};
}

}  // namespace lagwise::data
