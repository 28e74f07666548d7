#pragma once

#include <vector>

#include "lagwise/cli/run_record.h"
#include "lagwise/report/page.h"

namespace lagwise::cli {

/// Everything `lagwise report` shows of runs.
report::Page report_page(const std::vector<RunRecord>& runs);

// Its sections. One without a thing to show has no blocks.

report::Section runs_section(const std::vector<RunRecord>& runs);
report::Section training_section(const std::vector<RunRecord>& runs);
report::Section length_section(const std::vector<RunRecord>& runs);
report::Section samples_section(const std::vector<RunRecord>& runs);

/// The mean loss of positions (k L / 2, k L], L being the training length, from
/// eval/position-*.json; `key`: "loss" or "restart". NaN where it was not measured.
double loss_at(const RunRecord& run, int64_t k, const std::string& key = "loss");

/// Curves with at most `most` points each: means of neighbours.
void thin(report::Series& series, size_t most = 300);

}  // namespace lagwise::cli
