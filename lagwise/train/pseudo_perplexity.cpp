#include "lagwise/train/pseudo_perplexity.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lagwise/models/model.h"
#include "lagwise/train/confidence.h"
#include "lagwise/train/evaluation_mode.h"

namespace lagwise {
namespace {

/// The window once for each of positions [begin, end), which is hidden in that row.
Batch one_hidden_each(const at::Tensor& window, int64_t begin, int64_t end,
                      int64_t mask) {
  Batch batch;
  batch.tokens = window.unsqueeze(0).repeat({end - begin, 1});
  batch.targets = at::full_like(batch.tokens, -1);
  for (int64_t i = begin; i < end; ++i) {
    batch.targets[i - begin][i] = window[i];
    batch.tokens[i - begin][i] = mask;
  }
  return batch;
}

}  // namespace

PseudoPerplexity pseudo_perplexity(Model& model, const Task& task, const Draw& draw,
                                   const std::string& split, int64_t windows,
                                   const std::function<void(double)>& progress,
                                   int64_t batch) {
  const ModelConfig& config = model.config();
  if (!model_row(config.model).fills)
    throw std::invalid_argument("expected a masked model, encoder_lm, got " +
                                config.model);
  const int64_t size = task.size(split), length = config.length;
  windows = std::min(windows, size);
  if (windows < 1)
    throw std::invalid_argument("the split '" + split + "' has no whole window");
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  PseudoPerplexity found{.split = split, .windows = windows, .length = length};
  std::vector<double> sums, counts;
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t index = w * size / windows;
    const Batch asked = task.eval_batch(split, index, index + 1);
    // What is hidden stands among the targets, all else where it stood.
    const at::Tensor window =
        at::where(asked.targets >= 0, asked.targets, asked.tokens).squeeze(0);
    double sum = 0;
    for (int64_t begin = 0; begin < length; begin += batch) {
      const int64_t end = std::min(length, begin + batch);
      const Loss loss =
          model.loss(one_hidden_each(window, begin, end, config.vocabulary - 1), draw);
      sum += loss.sum.item<double>();
      found.tokens += loss.count, found.right += loss.right;
      if (progress)
        progress(static_cast<double>(w * length + end) /
                 static_cast<double>(windows * length));
    }
    sums.push_back(sum), counts.push_back(static_cast<double>(length));
  }
  const Interval mean = mean_of_windows(sums, counts);
  found.loss = mean.mean, found.error = mean.error;
  found.perplexity = std::exp(mean.mean);
  return found;
}

}  // namespace lagwise
