#pragma once

#include <CLI/CLI.hpp>

namespace lagwise::cli {

// The subcommands of `lagwise data`, one file each: data_<name>.cpp. A new one is
// declared here and listed in data.cpp.

void add_data_harmonise(CLI::App& verb);
void add_data_images(CLI::App& verb);
void add_data_language(CLI::App& verb);
void add_data_listops(CLI::App& verb);
void add_data_pathfinder(CLI::App& verb);
void add_data_retrieval(CLI::App& verb);
void add_data_text(CLI::App& verb);

}  // namespace lagwise::cli
