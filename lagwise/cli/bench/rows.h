#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/comparison.h"

namespace lagwise::cli {

// How the verbs of `lagwise bench` print their rows.

/// A line on the terminal that each next one overwrites; nothing in a log file.
void show_progress(const std::string& text);

/// Prints rows one by one as they are measured, as a table or as a JSON array, which
/// is whole once `finish` was called. What is not a row goes to stderr beside JSON.
class RowPrinter {
 public:
  RowPrinter(bool json, const std::string& settings);

  /// `more`: further entries of the JSON object. `under`: a line below the table's.
  void row(const bench::BenchRow& row, const nlohmann::ordered_json& more = {},
           const std::string& under = "");
  void note(const std::string& text);
  void finish();

 private:
  void print_json(const bench::BenchRow& row, const nlohmann::ordered_json& more);
  void print_line(const bench::BenchRow& row, const std::string& under);

  bool json_;
  std::string last_;  // the title, or the name, of the row before
};

void print_rows(bool json, const std::vector<bench::BenchRow>& rows);

}  // namespace lagwise::cli
