#include "lagwise/train/prediction.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>

#include <algorithm>

#include "lagwise/models/model.h"
#include "lagwise/tasks/padded.h"

namespace lagwise {
namespace {

/// The tokens of some, each cut at what the model was trained on. Images never are
/// longer: their grid says how large they are.
Batch unlabelled_batch(const ModelConfig& model, const Unlabelled* first, size_t many) {
  const auto longest = static_cast<size_t>(model.length * model.patch);
  std::vector<std::vector<int64_t>> firsts, seconds;
  for (size_t i = 0; i < many; ++i) {
    firsts.push_back(first[i].first), seconds.push_back(first[i].second);
    firsts.back().resize(std::min(longest, firsts.back().size()));
    seconds.back().resize(std::min(longest, seconds.back().size()));
  }
  Batch batch;
  batch.tokens = padded(firsts, 0), batch.lengths = lengths_of(firsts);
  if (first->second.empty()) return batch;
  batch.source = padded(seconds, 0), batch.source_lengths = lengths_of(seconds);
  return batch;
}

}  // namespace

size_t Prediction::best() const {
  return static_cast<size_t>(std::ranges::max_element(probabilities) -
                             probabilities.begin());
}

std::vector<Prediction> predict(const Run& run, const std::vector<Unlabelled>& all,
                                size_t batch) {
  const at::NoGradGuard no_gradient;
  std::vector<Prediction> predictions;
  for (size_t begin = 0; begin < all.size(); begin += batch) {
    const size_t many = std::min(batch, all.size() - begin);
    const at::Tensor logits = run.model->logits(
        unlabelled_batch(run.model_config(), all.data() + begin, many), run.draw());
    const at::Tensor shares = at::softmax(logits.to(at::kDouble), -1).contiguous();
    const auto classes = static_cast<size_t>(shares.size(1));
    const double* row = shares.data_ptr<double>();
    for (size_t i = 0; i < many; ++i, row += classes)
      predictions.push_back({all[begin + i].name, {row, row + classes}});
  }
  return predictions;
}

std::string class_name(const Run& run, size_t index) {
  return index < run.class_names.size() ? run.class_names[index]
                                        : std::to_string(index);
}

}  // namespace lagwise
