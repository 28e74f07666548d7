#pragma once

#include <cstdint>
#include <vector>

#include "lagwise/models/model_config.h"

namespace lagwise {

/// The grid that a stack shows its encodings, which take up to `axes` axes of one: that of
/// the data, or nothing where they see its cells one after another. `model.grid` may ask
/// for either; std::invalid_argument says where that cannot be had.
std::vector<int64_t> grid_for(const ModelConfig& config, int64_t axes);

}  // namespace lagwise
