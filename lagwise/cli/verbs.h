#pragma once

#include <CLI/CLI.hpp>

namespace lagwise::cli {

// A verb is one file with one function, which adds a subcommand to the program
// and, as its callback, what the subcommand does. The callback prints its result
// on stdout and throws when it fails: program.h says what becomes of that.
// A new verb is declared here and listed in main.cpp.

void add_bench(CLI::App& app);
void add_compare(CLI::App& app);
void add_data(CLI::App& app);
void add_doctor(CLI::App& app);
void add_encodings(CLI::App& app);
void add_eval(CLI::App& app);
void add_generate(CLI::App& app);
void add_list(CLI::App& app);
void add_report(CLI::App& app);
void add_train(CLI::App& app);

}  // namespace lagwise::cli
