#include "lagwise/models/grid_for.h"

#include <stdexcept>
#include <string>

namespace lagwise {

std::vector<int64_t> grid_for(const ModelConfig& config, int64_t axes) {
  const bool asked = config.geometry == "grid";
  if (asked && config.grid.size() < 2)
    throw std::invalid_argument(
        "model.grid: expected auto or line, got grid: the data of this task has none");
  if (config.grid.size() < 2 || config.geometry == "line") return {};
  if (std::ssize(config.grid) <= axes) return config.grid;
  if (asked)
    throw std::invalid_argument(
        "model.grid: expected an encoding of " + std::to_string(config.grid.size()) +
        " axes where it is grid, got '" + config.encoding + "', which takes " +
        std::to_string(axes) + "; with line every encoding sees the cells in a line");
  return {};  // the cells one after another
}

}  // namespace lagwise
