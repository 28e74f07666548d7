#include "lagwise/train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/models/model.h"
#include "lagwise/train/evaluation_mode.h"

namespace lagwise {
Evaluation evaluate(Model& model, const Task& task, const Draw& draw,
                    const std::string& split, int64_t examples, int64_t batch,
                    const std::function<void(double)>& progress, int64_t length) {
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  const int64_t size = task.size(split, length);
  const int64_t end = examples > 0 ? std::min(examples, size) : size;
  if (end < 1) throw std::invalid_argument("the split '" + split + "' has no examples");

  Loss total;
  double sum = 0;
  // Batches lie spread over the split, the last one at its end: the first of a file are
  // no fair sample where examples are sorted, as the folders neg and pos are.
  const int64_t batches = (end + batch - 1) / batch;
  for (int64_t i = 0; i < batches; ++i) {
    const int64_t rows = std::min(batch, end - i * batch);
    const int64_t begin =
        i * batch + (size - end) * i / std::max<int64_t>(batches - 1, 1);
    const Loss loss =
        model.loss(task.eval_batch(split, begin, begin + rows, length), draw);
    sum += loss.sum.item<double>();
    total.count += loss.count;
    total.right += loss.right;
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(batches));
  }
  total.sum = at::zeros({}, at::kDouble).fill_(sum);

  Evaluation found;
  found.split = split, found.metric = task.metric();
  found.value = task.value(total);
  found.loss = sum / static_cast<double>(std::max<int64_t>(total.count, 1));
  found.examples = end, found.targets = total.count;
  found.more = task.more(split, total);
  return found;
}

}  // namespace lagwise
