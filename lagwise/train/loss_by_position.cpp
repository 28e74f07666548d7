#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/models/model.h"
#include "lagwise/train/confidence.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/judged.h"
#include "lagwise/train/restart.h"

namespace lagwise {
namespace {

/// Both lines of some windows: what is summed over positions, [B, N + 1] from 0 on.
struct Sums {
  at::Tensor loss, restart, count;
};

at::Tensor running_sum(const at::Tensor& x) {
  return at::constant_pad_nd(x.to(at::kDouble).cumsum(1), {1, 0}, 0);
}

/// Window `i` of `count` that lie evenly over the `all` there are.
int64_t place_of(int64_t i, int64_t count, int64_t all) { return i * all / count; }

/// Windows [begin, end) of `count` as one batch of rows of `length`.
Batch windows_between(const Task& task, const std::string& split, int64_t length,
                      int64_t count, int64_t begin, int64_t end) {
  const int64_t all = task.size(split, length);
  std::vector<at::Tensor> tokens, targets;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = place_of(i, count, all);
    const Batch one = task.eval_batch(split, at, at + 1, length);
    const int64_t missing = length - one.tokens.size(1);
    tokens.push_back(at::constant_pad_nd(one.tokens, {0, missing}, 0));
    targets.push_back(at::constant_pad_nd(one.targets, {0, missing}, -1));
  }
  Batch batch;
  batch.tokens = at::cat(tokens, 0), batch.targets = at::cat(targets, 0);
  return batch;
}

Sums sums_of(Model& model, const Batch& batch, const Draw& draw) {
  const at::Tensor loss = long_losses(model, batch.tokens, batch.targets, draw);
  const at::Tensor restart =
      restart_losses(model, batch.tokens, batch.targets, loss, draw);
  return {running_sum(loss), running_sum(restart), running_sum(batch.targets.ge(0))};
}

/// What windows have between two positions, one number a window.
std::vector<double> between(const at::Tensor& sums, int64_t begin, int64_t end) {
  const at::Tensor x = (sums.select(1, end) - sums.select(1, begin)).contiguous();
  return {x.data_ptr<double>(), x.data_ptr<double>() + x.numel()};
}

PositionLoss summarise(const Sums& sums, int64_t begin, int64_t end) {
  const std::vector<double> counts = between(sums.count, begin, end);
  const auto interval = [&](const at::Tensor& x) {
    return mean_of_windows(between(x, begin, end), counts);
  };
  const Interval loss = interval(sums.loss), restart = interval(sums.restart),
                 difference = interval(sums.loss - sums.restart);
  return {begin,        end,           loss.mean,       loss.error,
          restart.mean, restart.error, difference.mean, difference.error};
}

std::vector<PositionLoss> summarise(const Sums& sums,
                                    const std::vector<int64_t>& edges) {
  std::vector<PositionLoss> parts;
  int64_t begin = 0;
  for (const int64_t end : edges) {
    if (end <= begin) continue;
    const PositionLoss part = summarise(sums, begin, end);
    if (part.loss == part.loss) parts.push_back(part);  // else nobody reaches there
    begin = end;
  }
  return parts;
}

/// L/8, 2L/8, ..., length; coarser by twos where there would be more than 256.
std::vector<int64_t> fine_edges(int64_t trained, int64_t length) {
  int64_t eighths = 1;
  while (length * 8 > trained * eighths * 256) eighths *= 2;
  std::vector<int64_t> edges;
  for (int64_t i = eighths; i * trained / 8 < length; i += eighths)
    edges.push_back(i * trained / 8);
  edges.push_back(length);
  return edges;
}

/// L/2 and the given ones below the length, or L, 2L, 4L, ...; then the length.
std::vector<int64_t> coarse_edges(int64_t trained, int64_t length,
                                  const std::vector<int64_t>& given) {
  std::vector<int64_t> edges = {trained / 2};
  if (given.empty())
    for (int64_t end = trained; end < length; end *= 2) edges.push_back(end);
  edges.insert(edges.end(), given.begin(), given.end());
  edges.erase(std::remove_if(edges.begin(), edges.end(),
                             [&](int64_t end) { return end >= length; }),
              edges.end());
  std::sort(edges.begin(), edges.end());
  edges.push_back(length);
  return edges;
}

}  // namespace

LossByPosition loss_by_position(Model& model, const Task& task, const Draw& draw,
                                const std::string& split, int64_t length,
                                int64_t windows,
                                const std::function<void(double)>& progress,
                                const std::vector<int64_t>& edges) {
  const c10::NoGradGuard no_graph;
  const Judged judged(model);
  if (length < 1)
    throw std::invalid_argument("expected windows of at least 1 token, got " +
                                std::to_string(length));
  const int64_t all = task.size(split, length);
  if (all < 1)
    throw std::invalid_argument("the split '" + split + "' has no window of " +
                                std::to_string(length) + " tokens");
  LossByPosition found;
  found.split = split, found.length = length;
  found.trained = model.config().length;
  found.windows = windows > 0 ? std::min(windows, all) : all;

  const int64_t at_once =
      std::max<int64_t>(1, 2 * tokens_at_once(model.config()) / length);
  std::vector<at::Tensor> loss, restart, count;
  for (int64_t begin = 0; begin < found.windows; begin += at_once) {
    const int64_t end = std::min(begin + at_once, found.windows);
    const Sums some = sums_of(
        model, windows_between(task, split, length, found.windows, begin, end), draw);
    loss.push_back(some.loss), restart.push_back(some.restart);
    count.push_back(some.count);
    if (progress)
      progress(static_cast<double>(end) / static_cast<double>(found.windows));
  }
  const Sums sums = {at::cat(loss, 0), at::cat(restart, 0), at::cat(count, 0)};
  found.buckets = summarise(sums, fine_edges(found.trained, length));
  found.spans = summarise(sums, coarse_edges(found.trained, length, edges));
  return found;
}

}  // namespace lagwise
