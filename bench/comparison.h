#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/floors.h"
#include "bench/timing.h"

namespace lagwise::bench {

/// What is timed. It returns its results, so that they are not counted as its memory.
using Call = std::function<std::vector<at::Tensor>()>;

struct Shape {
  int64_t n, heads, d, e;
  int64_t batch = 1;
};

/// Rows have these sizes unless they say otherwise, so that families can be compared.
inline constexpr int64_t kHeads = 8, kWidth = 64, kSines = 5, kRealizations = 64;

struct Baseline {
  std::string name;
  Call call;
  int threads = 1;
  double times = 1;        ///< factor on its time: 64 if it ran on a 64th of the length
  double floor_share = 0;  ///< of the matrix product's rate: a slower baseline is
                           ///<   unfair; 0: `floors.h` decides
  bool weigh = true;       ///< call it once more to count its memory
};

/// Ours and its rivals, timed in one run.
struct Comparison {
  std::string name;
  std::string direction;  ///< forward, backward, forward+backward, step
  Shape shape = {};
  int threads = 1;
  Call ours;
  std::vector<Baseline> baselines;
  bool is_cost = false;  ///< the ratio is ours / baseline
  double gflop = 0;      ///< useful work of one call
};

/// One line of `lagwise bench linear`, `encodings`, `train`, ...: our time beside one
/// baseline's.
struct BenchRow {
  std::string name;       ///< of the case; says so where `ratio` is a cost
  std::string direction;  ///< forward, backward, forward+backward, step
  int64_t n = 0, heads = 0, d = 0, e = 0, batch = 1;
  int threads = 1;
  double ours_ms = 0;  ///< of one call
  std::string baseline;
  double baseline_ms = 0;
  double ratio = 0;            ///< baseline / ours; of a cost: ours / baseline
  double gflops = 0;           ///< ours, useful work; attention: 4 D E a token
  double peak_gflops = 0;      ///< of an FMA loop on as many threads, in this run
  double fraction = 0;         ///< gflops / peak_gflops
  int64_t extra_bytes = 0;     ///< our working memory beyond inputs and outputs
  int64_t baseline_bytes = 0;  ///< and the baseline's
  bool weak_baseline = false;  ///< slower than its floor: the row proves nothing
  FloorCheck floor = {};       ///< where it has one
  std::string note = {};       ///< why the baseline has no time, or an estimate
};

/// How a Comparer goes about it.
struct Manner {
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<void(const BenchRow&)> on_row = [](const BenchRow&) {};
  std::vector<Times> (*time)(const std::vector<Side>&, const Patience&) = time_in_turn;
  Patience patience = {};
};

/// Measures comparisons and collects their rows, each handed on as it is measured.
class Comparer {
 public:
  Comparer(bool quick, std::function<void(const std::string&)> progress);
  Comparer(bool quick, Manner manner);

  bool quick() const { return quick_; }
  void measure(const Comparison& c);
  const std::vector<BenchRow>& rows() const { return rows_; }

 private:
  double peak(int threads);
  double gemm(int threads);
  void compare(BenchRow row, const Comparison& c, const Baseline& baseline,
               const Times& times);

  bool quick_;
  Manner manner_;
  std::map<int, double> peaks_, gemms_;
  std::vector<BenchRow> rows_;
};

}  // namespace lagwise::bench
