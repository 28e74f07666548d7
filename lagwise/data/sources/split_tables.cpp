#include "lagwise/data/sources/split_tables.h"

#include <filesystem>
#include <vector>

#include "lagwise/core/errors.h"

namespace lagwise::data {
namespace {

std::string table_of(const std::string& folder, const std::vector<std::string>& names) {
  std::string found;
  for (const std::string& name : names)
    for (const char* ending : {".tsv", ".csv", ".jsonl"}) {
      const std::string file = folder + "/" + name + ending;
      if (!std::filesystem::exists(file)) continue;
      if (!found.empty())
        throw DataError(folder, -1,
                        "one table for the split " + names.front() + ", got " + found +
                            " and " + file);
      found = file;
    }
  return found;
}

}  // namespace

SplitTables find_split_tables(const std::string& folder) {
  return {table_of(folder, {"train"}), table_of(folder, {"valid", "val", "dev"}),
          table_of(folder, {"test"})};
}

}  // namespace lagwise::data
