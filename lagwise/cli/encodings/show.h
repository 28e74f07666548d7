#pragma once

#include <CLI/CLI.hpp>

namespace lagwise::cli {

/// `lagwise encodings show NAME[:options]`.
void add_encodings_show(CLI::App& encodings);

}  // namespace lagwise::cli
