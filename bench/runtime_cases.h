#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lagwise::bench {

struct RuntimePlan {
  int threads = 2;
  bool quick = false;  ///< models of one layer, fewer repetitions
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// One step of `batch` texts by lagwise/runtime beside the same by torch.
struct RuntimeRow {
  std::string weights;  ///< f32, bf16, int8
  int64_t dim = 0, layers = 0, batch = 1;
  int threads = 1;
  double ours_ms = 0, baseline_ms = 0;  ///< of a step of all texts
  double ratio = 0;                     ///< baseline / ours
  double weight_bytes = 0;              ///< that a step reads
  double read_gbps = 0;                 ///< of a loop that only reads as many bytes, in
                                        ///<   this run, on as many threads
  double fraction = 0;                  ///< weight_bytes / ours_ms over that
};

/// Decoders of bytes with RoPE and linear attention: C = 64 in 3 layers on one thread,
/// C = 512 in 4 layers on plan.threads; with 1 and 16 texts at a time; weights in f32,
/// bf16 and int8. All sides of one size are timed in turn, three rounds of each.
void run_runtime_cases(const RuntimePlan& plan,
                       const std::function<void(const RuntimeRow&)>& on_row);

}  // namespace lagwise::bench
