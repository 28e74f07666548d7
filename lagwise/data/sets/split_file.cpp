#include "lagwise/data/sets/split_file.h"

#include <map>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/path_kind.h"

namespace lagwise::data {

const std::vector<std::string>& split_names(const std::string& split) {
  static const std::map<std::string, std::vector<std::string>> names = {
      {"train", {"train"}},
      {"valid", {"valid", "val", "validation", "dev"}},
      {"test", {"test"}}};
  return names.at(split);
}

std::string find_split_file(const std::string& folder, const std::string& split,
                            const std::vector<std::string>& endings) {
  std::string found;
  for (const std::string& name : split_names(split))
    for (const std::string& ending : endings) {
      const std::string file = folder + "/" + name + ending;
      if (!is_there(file)) continue;
      if (!found.empty())
        throw DataError(
            folder, -1,
            "one file for the split " + split + ", got " + found + " and " + file);
      found = file;
    }
  return found;
}

}  // namespace lagwise::data
