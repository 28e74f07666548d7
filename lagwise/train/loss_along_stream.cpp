#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>

#include "lagwise/core/clock.h"
#include "lagwise/models/model.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/evaluation_mode.h"
#include "lagwise/train/restart.h"

namespace lagwise {
namespace {

/// The second number of statm: pages that are in memory.
int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// A stream [1, N + 1] as tokens and what comes after each.
struct Stream {
  at::Tensor tokens, targets;  // [1, N]
};

Stream read_stream(const Task& task, const std::string& split, int64_t to) {
  const std::vector<int64_t> read = task.stream(split, 0, to + 1);
  const auto all = static_cast<int64_t>(read.size());
  if (all < 2)
    throw std::invalid_argument("the split '" + split +
                                "' is too short for a stream: expected 2 tokens, got " +
                                std::to_string(all));
  const at::Tensor x = at::tensor(read, at::kLong).unsqueeze(0);
  return {x.narrow(1, 0, all - 1), x.narrow(1, 1, all - 1)};
}

/// Takes the next `count` tokens into the state; returns their losses [1, count].
at::Tensor take(Model& model, DecodingState& state, const Stream& stream,
                StreamPoint& point) {
  const int64_t count = point.end - point.begin;
  const auto begin = Clock::now();
  const at::Tensor losses =
      cross_entropy(
          model.extend_all(state, stream.tokens.narrow(1, point.begin, count)),
          stream.targets.narrow(1, point.begin, count))
          .by_target;
  point.loss = losses.mean(at::kDouble).item<double>();
  point.tokens_per_second =
      static_cast<double>(count) / std::max(seconds_since(begin), 1e-9);
  point.state_bytes = state.bytes();
  point.resident_bytes = resident_bytes();
  return losses;
}

}  // namespace

LossAlongStream loss_along_stream(Model& model, const Task& task, const Draw& draw,
                                  const std::string& split, int64_t to, int64_t chunk,
                                  const std::function<void(double)>& progress) {
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  if (to < 1 || chunk < 1)
    throw std::invalid_argument("a stream: expected to >= 1 and chunk >= 1, got " +
                                std::to_string(to) + " and " + std::to_string(chunk));
  LossAlongStream found{split, model.config().length, chunk, {}, ""};
  const Stream stream = read_stream(task, split, to);
  const int64_t n = stream.tokens.size(1);
  if (n < to)
    found.stopped =
        "the split '" + split + "' has only " + std::to_string(n + 1) + " tokens";
  const auto state = model.start(1, draw);
  std::vector<at::Tensor> losses;
  int64_t taken = 0;
  while (taken < n) {
    StreamPoint point{.begin = taken, .end = std::min(taken + chunk, n)};
    try {
      losses.push_back(take(model, *state, stream, point));
    } catch (const std::invalid_argument& error) {  // a table has ended
      if (found.points.empty()) throw;
      found.stopped = error.what();
      break;
    }
    taken = point.end;
    found.points.push_back(point);
    if (progress) progress(static_cast<double>(taken) / static_cast<double>(n));
  }
  const at::Tensor restart =
      restart_losses(model, stream.tokens.narrow(1, 0, taken),
                     stream.targets.narrow(1, 0, taken), at::cat(losses, 1), draw);
  for (StreamPoint& point : found.points)
    point.restart = restart.narrow(1, point.begin, point.end - point.begin)
                        .mean(at::kDouble)
                        .item<double>();
  return found;
}

}  // namespace lagwise
