#pragma once

#include <memory>
#include <string>

#include "lagwise/runtime/model.h"

namespace lagwise::runtime {

/// A state as a file, whole or not at all; std::runtime_error with the system's reason.
void save_state(const std::string& file, const State& state);

/// DataError: the file is damaged, or of another model.
std::unique_ptr<State> load_state(const std::string& file, const Model& model);

}  // namespace lagwise::runtime
