#pragma once

#include <string>
#include <vector>

#include "lagwise/train/adamw.h"

namespace lagwise {

/// Lets the parameters whose names match one of `patterns` stay as they are: they have no
/// gradient from here on, so an optimiser passes them over, weight decay and all, and
/// keeps their bits. Patterns are those of file names (`*`, `?`, `[a-z]`), parted by
/// commas; `*` also stands for dots: "embed.*,layers.0.*". Empty: none.
///
/// Returns how many numbers that are. std::invalid_argument for a pattern that no name
/// matches, and where nothing would be left to train.
int64_t freeze(const std::string& patterns, const std::vector<NamedTensor>& parameters);

}  // namespace lagwise
