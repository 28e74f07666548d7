#include "lagwise/data/sources/split_tables.h"

#include <filesystem>
#include <vector>

namespace lagwise::data {
namespace {

std::string table_of(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const char* ending : {".tsv", ".csv", ".jsonl"})
      if (std::string file = folder + "/" + name + ending;
          std::filesystem::exists(file))
        return file;
  return "";
}

}  // namespace

SplitTables find_split_tables(const std::string& folder) {
  return {table_of(folder, {"train"}), table_of(folder, {"valid", "val", "dev"}),
          table_of(folder, {"test"})};
}

}  // namespace lagwise::data
