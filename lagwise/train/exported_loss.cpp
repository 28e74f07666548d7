#include "lagwise/train/exported_loss.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "lagwise/train/decoder.h"

namespace lagwise {
namespace {

/// -log softmax(logits)[target], in double.
double nats(std::span<const float> logits, int64_t target) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - most));
  return std::log(sum) -
         static_cast<double>(logits[static_cast<size_t>(target)] - most);
}

}  // namespace

Loss exported_loss(const runtime::Model& model, const Batch& batch) {
  const at::Tensor tokens = batch.tokens.contiguous();
  const at::Tensor targets = batch.targets.contiguous();
  const int64_t rows = tokens.size(0), columns = tokens.size(1);
  SmallDecoder texts(model, rows);
  std::vector<int64_t> now(static_cast<size_t>(rows));
  double sum = 0;
  Loss loss;
  for (int64_t t = 0; t < columns; ++t) {
    for (int64_t i = 0; i < rows; ++i) {
      const bool ended =
          batch.lengths.defined() && t >= batch.lengths[i].item<int64_t>();
      now[static_cast<size_t>(i)] =
          ended ? -1 : tokens.data_ptr<int64_t>()[i * columns + t];
    }
    texts.step(now);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t target = targets.data_ptr<int64_t>()[i * columns + t];
      if (target < 0) continue;
      const std::span<const float> logits = texts.logits(static_cast<size_t>(i));
      sum += nats(logits, target);
      const auto best = std::max_element(logits.begin(), logits.end());
      loss.right += best - logits.begin() == target;
      ++loss.count;
    }
  }
  loss.sum = at::full({}, sum, at::kDouble);
  return loss;
}

}  // namespace lagwise
