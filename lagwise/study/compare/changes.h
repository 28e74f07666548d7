#pragma once

#include <string>
#include <vector>

#include "lagwise/study/compare/plan.h"

namespace lagwise {

/// What makes the run in a cell's folder another one than is asked for now, as `lagwise
/// train` would name it ("train.steps = 100, was 3"), or other data. Empty: there is no
/// run, it is the one, or it can go on to be the one. Threads do not count: they decide
/// speed and last bits.
std::vector<std::string> changes_of(const GridCell& cell, const CompareRequest& request,
                                    int64_t seed);

/// std::invalid_argument, in one line, if any cell's folder holds such another run:
/// which, and what differs.
void refuse_changes(const std::vector<GridCell>& cells, const CompareRequest& request);

}  // namespace lagwise
