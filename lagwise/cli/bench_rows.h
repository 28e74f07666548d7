#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/comparison.h"

namespace lagwise::cli {

// How the verbs of `lagwise bench` print their rows.

/// A line on the terminal that each next one overwrites; nothing in a log file.
void show_progress(const std::string& text);

nlohmann::ordered_json row_json(const bench::BenchRow& row);

void print_heading(const std::string& settings);
void print_row(const bench::BenchRow& row);

void print_json(const std::vector<bench::BenchRow>& rows, const std::string& settings);
void print_table(const std::vector<bench::BenchRow>& rows, const std::string& settings);

}  // namespace lagwise::cli
