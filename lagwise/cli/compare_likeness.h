#pragma once

#include <string>
#include <vector>

#include "lagwise/cli/run_summary.h"

namespace lagwise::cli {

/// How like their sources the continuations of these runs are, as `lagwise eval
/// --continuations` found: lines of a table, a run a line, then what tells how to read
/// it. Empty where no run has any.
std::vector<std::string> likeness_lines(const std::vector<RunSummary>& runs);

}  // namespace lagwise::cli
