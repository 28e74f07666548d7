#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lagwise::bench {

struct Point {
  int64_t n;      ///< length of the sequence; for a step: of the past
  double ms;      ///< of one call
  int64_t bytes;  ///< working memory; for a step: what is kept of the past
};

struct Curve {
  std::string label;          ///< "exact", "linear, none", "linear, elu1"
  std::vector<Point> points;  ///< by rising n
  std::string stopped;        ///< why there are no further points, if so
};

/// Where the exact curve, cheaper at first, becomes the dearer one.
struct Crossing {
  enum class Where { below, at, beyond };
  Where where;
  double n;  ///< at: interpolated; below, beyond: the first, last common length
};

/// One picture: exact attention and its linear rivals, over N.
struct Panel {
  std::string direction;  ///< forward, forward+backward, step
  int64_t d;
  Curve exact;
  std::vector<Curve> linear;
};

struct CrossoverPlan {
  int threads = 1;
  std::vector<int64_t> widths = {32, 64, 128};
  std::vector<int64_t> lengths = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  double longest_call_ms = 4000;  ///< exact stops before a call takes longer
  double side_budget_ms = 400;    ///< of all repetitions of a side at one length
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// What `--quick` measures: the same, in well under a minute on two cores.
CrossoverPlan quick_crossover();

/// Measures all panels: 8 heads, batch 1, E = D, causal.
std::vector<Panel> run_crossover(const CrossoverPlan& plan);

/// First length at which `linear` takes no longer than `exact`, with both taken
/// as straight between measured lengths on log-log paper. Both curves have the
/// same lengths as far as the shorter goes, and at least one.
Crossing find_crossing(const Curve& exact, const Curve& linear);

/// "N = 310", "below 128", "beyond 8192".
std::string describe(const Crossing& crossing);

}  // namespace lagwise::bench
