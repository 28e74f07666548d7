#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lagwise/models/model.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// The metric of a task on a split.
struct Evaluation {
  std::string split, metric;
  double value = 0;  ///< of the metric
  double loss = 0;   ///< nats per target
  int64_t examples = 0, targets = 0;
  std::map<std::string, double> more;  ///< Task::more
};

/// Judges `model` on the first `examples` (0: all) of a split, `batch` at a time.
/// `progress` is called with the fraction done.
Evaluation evaluate(Model& model, const Task& task, const Draw& draw,
                    const std::string& split, int64_t examples = 0, int64_t batch = 16,
                    const std::function<void(double)>& progress = {});

/// The loss of the targets at positions [begin, end) of a window, in nats.
struct PositionLoss {
  int64_t begin = 0, end = 0;
  double loss = 0, error = 0;  ///< mean, and half of its 95 % confidence interval,
                               ///<   over windows
  double restart = 0, restart_error = 0;  ///< the same tokens, seen through windows of
                                          ///<   the training length
  double difference = 0, difference_error = 0;  ///< loss - restart, paired by window:
                                                ///<   above 0 long context harms,
                                                ///<   below it is used
};

struct LossByPosition {
  std::string split;
  int64_t trained = 0;  ///< the training length L
  int64_t length = 0;   ///< of the windows
  int64_t windows = 0;
  std::vector<PositionLoss> buckets;
};

/// Loss along windows of `length` tokens, with the restart line: windows of the
/// training length L that advance by L/2, of which the second half is scored, so that
/// each token sees between L/2 and L tokens before it, its positions counted anew.
/// Both lines score the same tokens, from position L/2 on.
LossByPosition loss_by_position(Model& model, const Task& task, const Draw& draw,
                                const std::string& split, int64_t length,
                                int64_t windows,
                                const std::function<void(double)>& progress = {});

/// One long stream in constant memory: chunks with carried state.
struct StreamPoint {
  int64_t begin = 0, end = 0;
  double loss = 0;               ///< nats per token in [begin, end)
  double tokens_per_second = 0;  ///< in this part
  int64_t state_bytes = 0;       ///< of the decoding state after it
  int64_t resident_bytes = 0;    ///< of the process after it
};

std::vector<StreamPoint> loss_along_stream(
    Model& model, const Task& task, const Draw& draw, const std::string& split,
    int64_t to, int64_t chunk, const std::function<void(double)>& progress = {});

}  // namespace lagwise
