#pragma once

#include <CLI/CLI.hpp>

namespace lagwise::cli {

void add_data_midi(CLI::App& data);     ///< `lagwise data midi DIR --tokens ..`
void add_data_grooves(CLI::App& data);  ///< `lagwise data grooves --styles ..`

}  // namespace lagwise::cli
