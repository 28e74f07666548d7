#pragma once

#include <string>
#include <vector>

#include "lagwise/study/run_files.h"
#include "lagwise/study/run_summary.h"

namespace lagwise {

/// How like their sources the continuations of these runs are, as `lagwise eval
/// --continuations` found: lines of a table, a run a line, then what tells how to read
/// it, and a line that names those whose figures are of an earlier definition. Empty
/// where no run has any.
std::vector<std::string> likeness_lines(const std::vector<RunSummary>& runs);

/// Whether continuations-SPLIT.json is of an earlier version, whose two figures were
/// means over all tracks, drums among them, with silence as 0: nothing to set beside
/// those of today.
bool judged_with_drums_among(const Json& found);

}  // namespace lagwise
