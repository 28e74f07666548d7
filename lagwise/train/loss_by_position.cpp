#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/models/model.h"
#include "lagwise/train/confidence.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/evaluation_mode.h"
#include "lagwise/train/restart.h"

namespace lagwise {
namespace {

/// What some windows lose: the sum over positions before each, [B, N + 1] from 0 on.
struct Sums {
  at::Tensor loss, restart, count;
  at::Tensor best, source;           // undefined where the task does not know them
  std::vector<at::Tensor> contexts;  // [B, T + 1]: of the last T targets, by context
};

at::Tensor running_sum(const at::Tensor& x) {
  return at::constant_pad_nd(x.to(at::kDouble).cumsum(1), {1, 0}, 0);
}

/// The same of the windows of all.
Sums joined(const std::vector<Sums>& all) {
  const auto together = [&](const auto& part) {
    std::vector<at::Tensor> parts;
    for (const Sums& some : all) parts.push_back(part(some));
    return parts[0].defined() ? at::cat(parts, 0) : at::Tensor();
  };
  const auto field = [&](at::Tensor Sums::*member) {
    return together([&](const Sums& some) { return some.*member; });
  };
  Sums sums = {field(&Sums::loss), field(&Sums::restart), field(&Sums::count),
               field(&Sums::best), field(&Sums::source),  {}};
  for (size_t i = 0; i < all[0].contexts.size(); ++i)
    sums.contexts.push_back(
        together([&](const Sums& some) { return some.contexts[i]; }));
  return sums;
}

/// Window `i` of `count` that lie evenly over the `all` there are.
int64_t place_of(int64_t i, int64_t count, int64_t all) { return i * all / count; }

/// Some windows, and what can be known of them.
struct Windows {
  Batch batch;
  IdealLosses ideal;
};

/// Windows [begin, end) of `count` as one batch of rows of `length`.
Windows windows_between(const Task& task, const std::string& split, int64_t length,
                        int64_t count, int64_t begin, int64_t end) {
  const int64_t all = task.size(split, length);
  std::vector<at::Tensor> tokens, targets, best, source;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = place_of(i, count, all);
    const Batch one = task.eval_batch(split, at, at + 1, length);
    const int64_t missing = length - one.tokens.size(1);
    tokens.push_back(at::constant_pad_nd(one.tokens, {0, missing}, 0));
    targets.push_back(at::constant_pad_nd(one.targets, {0, missing}, -1));
    if (const auto ideal = task.ideal(split, at, at + 1, length))
      best.push_back(ideal->best), source.push_back(ideal->source);
  }
  Windows windows;
  windows.batch.tokens = at::cat(tokens, 0);
  windows.batch.targets = at::cat(targets, 0);
  if (!best.empty()) windows.ideal = {at::cat(best, 0), at::cat(source, 0)};
  return windows;
}

/// L/4, L/2, L, 2L, ... up to the length of the windows; none where they are below L.
std::vector<int64_t> context_lengths(int64_t trained, int64_t length) {
  std::vector<int64_t> contexts;
  if (length < trained) return contexts;
  for (const int64_t part : {4, 2})
    if (trained % part == 0) contexts.push_back(trained / part);
  for (int64_t context = trained; context <= length; context *= 2)
    contexts.push_back(context);
  return contexts;
}

Sums sums_of(Model& model, const Windows& windows, const Draw& draw) {
  const at::Tensor &tokens = windows.batch.tokens, &targets = windows.batch.targets;
  const at::Tensor loss = long_losses(model, tokens, targets, draw);
  const at::Tensor restart = restart_losses(model, tokens, targets, loss, draw);
  Sums sums = {
      running_sum(loss), running_sum(restart), running_sum(targets.ge(0)), {}, {}, {}};
  if (windows.ideal.best.defined()) {
    sums.best = running_sum(windows.ideal.best);
    sums.source = running_sum(windows.ideal.source);
  }
  const int64_t n = tokens.size(1), from = n - slide_of(n);
  for (const int64_t context : context_lengths(model.config().length, n))
    sums.contexts.push_back(running_sum(
        context == n ? loss.slice(1, from)
                     : losses_in_context(model, tokens, targets, context, from, draw)));
  return sums;
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
  PositionLoss part = {begin,        end,           loss.mean,       loss.error,
                       restart.mean, restart.error, difference.mean, difference.error};
  if (sums.best.defined()) {
    part.best = interval(sums.best).mean;
    part.source = interval(sums.source).mean;
  }
  return part;
}

/// The curve of loss against context, each beside that of the training length.
std::vector<ContextLoss> summarise_contexts(const Sums& sums, int64_t trained) {
  const int64_t n = sums.loss.size(1) - 1, from = n - slide_of(n);
  const std::vector<double> counts = between(sums.count, from, n);
  const std::vector<int64_t> contexts = context_lengths(trained, n);
  const auto own = std::find(contexts.begin(), contexts.end(), trained);
  std::vector<ContextLoss> curve;
  for (size_t i = 0; i < contexts.size(); ++i) {
    const auto interval = [&](const at::Tensor& x) {
      return mean_of_windows(between(x, 0, n - from), counts);
    };
    const Interval loss = interval(sums.contexts[i]);
    const Interval difference = interval(
        sums.contexts[i] - sums.contexts[static_cast<size_t>(own - contexts.begin())]);
    curve.push_back(
        {contexts[i], loss.mean, loss.error, difference.mean, difference.error});
  }
  return curve;
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
  const EvaluationMode no_dropout(model);
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
  found.slide = slide_of(found.trained);
  found.windows = windows > 0 ? std::min(windows, all) : all;

  const int64_t at_once =
      std::max<int64_t>(1, 2 * tokens_at_once(model.config()) / length);
  std::vector<Sums> all_sums;
  for (int64_t begin = 0; begin < found.windows; begin += at_once) {
    const int64_t end = std::min(begin + at_once, found.windows);
    all_sums.push_back(sums_of(
        model, windows_between(task, split, length, found.windows, begin, end), draw));
    if (progress)
      progress(static_cast<double>(end) / static_cast<double>(found.windows));
  }
  const Sums sums = joined(all_sums);
  found.buckets = summarise(sums, fine_edges(found.trained, length));
  found.spans = summarise(sums, coarse_edges(found.trained, length, edges));
  found.contexts = summarise_contexts(sums, found.trained);
  found.context_targets = found.contexts.empty() ? 0 : slide_of(length);
  return found;
}

}  // namespace lagwise
