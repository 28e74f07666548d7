#include "lagwise/study/compare/grid_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lagwise {
namespace {

/// Columns as people see them: "±" is two bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string grid_text(const Grid& grid) {
  std::string text;
  std::vector<size_t> widths(grid[0].size(), 0);
  for (const auto& cells : grid)
    for (size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], width_of(cells[i]));
  for (const auto& cells : grid) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i)
      line += cells[i] + std::string(widths[i] - width_of(cells[i]) + 2, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string grid_markdown(const Grid& grid) {
  std::string text;
  for (size_t i = 0; i < grid.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(grid[i], " | "));
    if (i > 0) continue;
    for (size_t j = 0; j < grid[0].size(); ++j) text += "|---";
    text += "|\n";
  }
  return text;
}

}  // namespace lagwise
