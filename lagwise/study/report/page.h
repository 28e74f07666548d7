#pragma once

#include <string>
#include <vector>

#include "lagwise/report/page.h"
#include "lagwise/study/run_record.h"

namespace lagwise {

/// Everything `lagwise report` shows of runs. `plays_on`: the name of the one whose
/// model goes on in the page; it takes the prompts of its samples along.
report::Page report_page(const std::vector<RunRecord>& runs,
                         const std::string& plays_on = "");

// The sections of the page. A section with nothing to show has no blocks.

report::Section runs_section(const std::vector<RunRecord>& runs);
report::Section cost_section(const std::vector<RunRecord>& runs);
report::Section training_section(const std::vector<RunRecord>& runs);
report::Section length_section(const std::vector<RunRecord>& runs);
report::Section music_section(const std::vector<RunRecord>& runs,
                              const std::string& plays_on = "");
report::Section kernels_section(const std::vector<RunRecord>& runs);
report::Section samples_section(const std::vector<RunRecord>& runs);

/// How much of the past a loss by position is of: all, or the restart line's.
enum class Past { whole, restarted };

/// The loss of the targets up to k training lengths, from the length measured before.
/// NaN where it was not measured.
double loss_at(const RunRecord& run, int64_t k, Past past = Past::whole);

/// Tokens per second, token by token: as measured by `lagwise eval`, or while continuing
/// music. NaN where neither was done.
double writing_speed(const RunRecord& run);

/// Curves with at most `most` points each: means of neighbours.
void thin(report::Series& series, size_t most = 300);

}  // namespace lagwise
