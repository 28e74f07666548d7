#include "lagwise/data/sets/left_out.h"

#include <algorithm>

namespace lagwise::data {

std::vector<std::string> left_out_lines(
    const std::vector<std::pair<std::string, std::vector<std::string>>>& reasons) {
  std::vector<std::string> lines;
  for (const auto& [what, names] : reasons)
    if (!names.empty())
      lines.push_back("left out: " + std::to_string(names.size()) + ", " + what +
                      ", such as " + *std::ranges::min_element(names));
  return lines;
}

}  // namespace lagwise::data
