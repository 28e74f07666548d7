#pragma once

#include <string>
#include <vector>

#include "lagwise/runtime/lagwise.h"

namespace lagwise::runtime {

/// The names of a model's tokens, by id; none where they are bytes.
std::vector<std::string> words_of(const lagwise_model* model);

}  // namespace lagwise::runtime
