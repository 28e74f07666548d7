#pragma once

#include <string>
#include <vector>

#include "bench/crossover.h"

namespace lagwise::bench {

/// All panels as a table: time and memory at each N, and where the curves cross.
std::string crossover_table(const std::vector<Panel>& panels);

/// One panel as a chart for a terminal, both axes logarithmic:
/// x exact, o linear (elu1), * both.
std::string crossover_chart(const Panel& panel);

/// One self-contained page: charts and a table per panel (report/page.h).
std::string crossover_html(const std::vector<Panel>& panels,
                           const std::string& settings);

}  // namespace lagwise::bench
