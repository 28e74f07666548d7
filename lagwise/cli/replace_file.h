#pragma once

#include <string>

namespace lagwise::cli {

/// Throws std::runtime_error, with the system's reason, if `file` cannot be
/// written. Changes nothing, so that a wrong name fails before long work starts.
void check_replaceable(const std::string& file);

/// Gives `file` these contents, all of them or none: they go to a temporary file
/// beside it, which then takes its name. A device or pipe is written directly.
void replace_file(const std::string& file, const std::string& contents);

}  // namespace lagwise::cli
