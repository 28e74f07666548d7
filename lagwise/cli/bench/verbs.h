#pragma once

#include <CLI/CLI.hpp>

namespace lagwise::cli {

// Verbs of `lagwise bench` that have a file of their own.

void add_generate_bench(CLI::App& bench);
void add_train_bench(CLI::App& bench);

}  // namespace lagwise::cli
