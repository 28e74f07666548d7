#include "lagwise/train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/models/model.h"
#include "lagwise/train/evaluation_mode.h"
#include "lagwise/train/spread.h"
#include "lagwise/train/team.h"

namespace lagwise {
namespace {

/// The sum over batches, in their order, of what processes found of each, [W, batches, 3]:
/// those who did not look at a batch have zeros there, which change nothing.
Loss total_of(const at::Tensor& found) {
  const auto numbers = found.accessor<double, 3>();
  double sum = 0;
  Loss total;
  for (int64_t i = 0; i < found.size(1); ++i) {
    double of_batch = 0;
    for (int64_t rank = 0; rank < found.size(0); ++rank) {
      of_batch += numbers[rank][i][0];
      total.count += static_cast<int64_t>(numbers[rank][i][1]);
      total.right += static_cast<int64_t>(numbers[rank][i][2]);
    }
    sum += of_batch;
  }
  total.sum = at::zeros({}, at::kDouble).fill_(sum);
  return total;
}

}  // namespace

Evaluation evaluate(Model& model, const Task& task, const Draw& draw,
                    const std::string& split, int64_t examples, int64_t batch,
                    const std::function<void(double)>& progress, int64_t length,
                    const Team* team) {
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  const auto loss = [&](const Batch& whole) {
    return model.loss(team ? team->part(whole, model.config().patch) : whole, draw);
  };
  return evaluate(loss, task, split, examples, batch, progress, length, team);
}

Evaluation evaluate(const std::function<Loss(const Batch&)>& loss_of, const Task& task,
                    const std::string& split, int64_t examples, int64_t batch,
                    const std::function<void(double)>& progress, int64_t length,
                    const Team* team) {
  const int64_t size = task.size(split, length);
  const int64_t end = examples > 0 ? std::min(examples, size) : size;
  if (end < 1) throw std::invalid_argument("the split '" + split + "' has no examples");

  const std::vector<Stretch> stretches = spread(size, examples, batch);
  const int64_t batches = std::ssize(stretches);
  const int64_t us = team ? team->group() : 0, step = team ? team->groups() : 1;
  at::Tensor mine = at::zeros({batches, 3}, at::kDouble);  // sum, count, right of each
  for (int64_t i = us; i < batches; i += step) {
    const auto [begin, last] = stretches[static_cast<size_t>(i)];
    const Loss loss = loss_of(task.eval_batch(split, begin, last, length));
    double* const row = mine.data_ptr<double>() + 3 * i;
    row[0] = loss.sum.item<double>();
    row[1] = static_cast<double>(loss.count), row[2] = static_cast<double>(loss.right);
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(batches));
  }
  const Loss total = total_of(team ? team->gather(mine) : mine.unsqueeze(0));
  const double sum = total.sum.item<double>();

  Evaluation found;
  found.split = split, found.metric = task.metric();
  found.value = task.value(total);
  found.loss = sum / static_cast<double>(std::max<int64_t>(total.count, 1));
  found.examples = end, found.targets = total.count;
  found.more = task.more(split, total);
  found.guess = task.guess(split).value_or(kNotKnown);
  return found;
}

}  // namespace lagwise
