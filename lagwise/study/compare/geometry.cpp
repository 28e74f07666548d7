// What pictures looked like to each encoding: rows and columns, or one line of cells.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "lagwise/study/compare/table.h"

namespace lagwise {

std::vector<std::string> geometry_lines(const std::vector<CompareRow>& rows) {
  std::map<std::string, std::vector<std::string>> seen;  // geometry -> encodings
  for (const CompareRow& row : rows) {
    if (row.geometry.empty()) continue;
    std::vector<std::string>& encodings = seen[row.geometry];
    if (std::ranges::find(encodings, row.encoding) == encodings.end())
      encodings.push_back(row.encoding);
  }
  std::vector<std::string> lines;
  for (const auto& [geometry, encodings] : seen)
    lines.push_back(
        fmt::format("{} by {}",
                    geometry == "line" ? "seen as a line of cells"
                                       : fmt::format("seen as a grid of {}", geometry),
                    seen.size() == 1 ? "every row"
                                     : fmt::format("{}", fmt::join(encodings, ", "))));
  if (seen.size() > 1)
    lines.push_back(
        "rows differ in what they see, not in their encoding alone: --set "
        "model.grid=line shows all of them the same");
  return lines;
}

}  // namespace lagwise
