#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "lagwise/ops/encoded.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

class Model;
class Team;

inline constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

/// The metric of a task on a split.
struct Evaluation {
  std::string split, metric;
  double value = 0;  ///< of the metric
  double loss = 0;   ///< nats per target
  int64_t examples = 0, targets = 0;
  std::map<std::string, double> more;  ///< Task::more
  double guess = kNotKnown;            ///< Task::guess
};

/// Judges `model` on `examples` (0: all) spread over a split, `batch` at a time, of
/// `length` tokens (0: that of training). `progress` is called with the fraction done.
/// A `team` shares out the batches, and all of it find the same, whatever its size.
Evaluation evaluate(Model& model, const Task& task, const Draw& draw,
                    const std::string& split, int64_t examples = 0, int64_t batch = 16,
                    const std::function<void(double)>& progress = {},
                    int64_t length = 0, const Team* team = nullptr);

/// The same of anything that has a loss on a batch.
Evaluation evaluate(const std::function<Loss(const Batch&)>& loss, const Task& task,
                    const std::string& split, int64_t examples = 0, int64_t batch = 16,
                    const std::function<void(double)>& progress = {},
                    int64_t length = 0, const Team* team = nullptr);

/// The metric of a task at several lengths (Task::judged_by_length).
struct MetricByLength {
  std::string split, metric;
  int64_t trained = 0;                    ///< the training length
  std::map<int64_t, Evaluation> lengths;  ///< by tokens of an example
};

/// The loss of the targets at positions [begin, end) of a window, in nats. The target
/// at position p comes after p + 1 tokens.
struct PositionLoss {
  int64_t begin = 0, end = 0;
  double loss = 0, error = 0;  ///< mean, and half of its 95 % confidence interval,
                               ///<   over windows; infinite for a single window
  double restart = 0, restart_error = 0;  ///< the same tokens, seen through windows of
                                          ///<   the training length
  double difference = 0, difference_error = 0;  ///< loss - restart, paired by window:
                                                ///<   above 0 long context harms,
                                                ///<   below it is used
  double best = kNotKnown,
         source = kNotKnown;  ///< IdealLosses, of tasks that have them
};

/// The loss of the same targets when all see `context` tokens, or somewhat less.
struct ContextLoss {
  int64_t context = 0;
  double loss = 0, error = 0;
  double difference = 0,
         difference_error = 0;  ///< to a context of the training length,
                                ///<   paired by window
};

struct LossByPosition {
  std::string split;
  int64_t trained = 0;  ///< the training length L
  int64_t length = 0;   ///< of the windows
  int64_t windows = 0;
  int64_t slide = 0;  ///< by which the windows of the restart line advance
  std::vector<PositionLoss> buckets;  ///< fine, for charts: an eighth of L each, wider
                                      ///<   where that would be more than 256
  std::vector<PositionLoss> spans;    ///< coarse, for tables: up to L/2, L, 2L, 4L, ...
  int64_t context_targets = 0;  ///< at the end of each window: those of `contexts`
  std::vector<ContextLoss> contexts;  ///< L/4, L/2, L, 2L, ... up to the length; none
                                      ///<   where that is below L
};

/// Loss along windows of `length` tokens, with the restart line (train/restart.h):
/// windows of the training length L that advance by L/8, positions counted anew. Below
/// L both lines are the same pass, so the difference there is 0; from L on a token
/// sees all tokens before it, or between 7/8 L and L of them. In the same way the last
/// eighth of each window is judged with shorter and longer contexts.
///
/// The `windows` (0: all there are) lie evenly over the split. `edges`: where the spans
/// end, rising, in place of L, 2L, 4L, ... A split without one whole window, or a
/// length beyond the table of the model's encoding, is a std::invalid_argument.
LossByPosition loss_by_position(Model& model, const Task& task, const Draw& draw,
                                const std::string& split, int64_t length,
                                int64_t windows,
                                const std::function<void(double)>& progress = {},
                                const std::vector<int64_t>& edges = {});

/// One part of a long stream.
struct StreamPoint {
  int64_t begin = 0, end = 0;
  double loss = 0;               ///< nats per token in [begin, end)
  double restart = 0;            ///< the same tokens on the restart line
  double tokens_per_second = 0;  ///< in this part, the restart line left out
  int64_t state_bytes = 0;       ///< of the decoding state after it
  int64_t resident_bytes = 0;    ///< of the process after it
};

struct LossAlongStream {
  std::string split;
  int64_t trained = 0, chunk = 0;
  std::vector<StreamPoint> points;  ///< one a chunk
  std::string stopped;              ///< why it ended before `to`; empty: it did not
};

/// One stream from the beginning of a split, in chunks with carried state: constant
/// memory with linear attention; with exact attention the cache grows, and so does the
/// time of a chunk. It stops early where the split or the encoding's table ends.
LossAlongStream loss_along_stream(Model& model, const Task& task, const Draw& draw,
                                  const std::string& split, int64_t to, int64_t chunk,
                                  const std::function<void(double)>& progress = {});

}  // namespace lagwise
