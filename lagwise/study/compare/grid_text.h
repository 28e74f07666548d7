#pragma once

#include <string>
#include <vector>

namespace lagwise {

/// Rows of cells, the first the heading; all as long.
using Grid = std::vector<std::vector<std::string>>;

std::string grid_text(const Grid& grid);  ///< in columns, for a terminal
std::string grid_markdown(const Grid& grid);

}  // namespace lagwise
