#include "lagwise/train/restart.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <vector>

#include "lagwise/models/model.h"

namespace lagwise {

int64_t tokens_at_once(const ModelConfig& config) {
  constexpr int64_t kLogits = int64_t{1} << 24, kMost = 16384;
  return std::clamp<int64_t>(kLogits / config.vocabulary, 1, kMost);
}

at::Tensor long_losses(Model& model, const at::Tensor& tokens,
                       const at::Tensor& targets, const Draw& draw) {
  const int64_t rows = tokens.size(0), n = tokens.size(1);
  const int64_t chunk =
      std::max<int64_t>(1, tokens_at_once(model.config()) / std::max<int64_t>(1, rows));
  const auto state = model.start(rows, draw);
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < n; begin += chunk) {
    const int64_t count = std::min(chunk, n - begin);
    parts.push_back(
        cross_entropy(model.extend_all(*state, tokens.narrow(1, begin, count)),
                      targets.narrow(1, begin, count))
            .by_target);
  }
  return at::cat(parts, 1);
}

int64_t slide_of(int64_t context) { return std::max<int64_t>(1, context / 8); }

at::Tensor losses_in_context(Model& model, const at::Tensor& tokens,
                             const at::Tensor& targets, int64_t context, int64_t from,
                             const Draw& draw) {
  const c10::NoGradGuard no_graph;
  const int64_t n = tokens.size(1), h = slide_of(context), first = from + h - context;
  const int64_t windows = (n - from + h - 1) / h;
  // [B, windows, context]: the last is filled up; nothing before depends on what comes
  // after.
  const auto cut = [&](const at::Tensor& x, int64_t filler) {
    return at::constant_pad_nd(x, {0, from + windows * h - n}, filler)
        .narrow(1, first, context + (windows - 1) * h)
        .unfold(1, context, h);
  };
  const at::Tensor seen = cut(tokens, 0).reshape({-1, context});
  const at::Tensor scored = cut(targets, -1).narrow(2, context - h, h).reshape({-1, h});
  const int64_t rows = std::max<int64_t>(1, tokens_at_once(model.config()) / context);
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < seen.size(0); begin += rows) {
    const int64_t count = std::min(rows, seen.size(0) - begin);
    Batch batch;
    batch.tokens = seen.narrow(0, begin, count);
    const at::Tensor logits =
        model.logits(batch, draw).narrow(1, context - h, h);  // [count, h, V]
    parts.push_back(cross_entropy(logits, scored.narrow(0, begin, count)).by_target);
  }
  return at::cat(parts, 0)
      .reshape({tokens.size(0), windows * h})
      .narrow(1, 0, n - from);
}

at::Tensor restart_losses(Model& model, const at::Tensor& tokens,
                          const at::Tensor& targets, const at::Tensor& known,
                          const Draw& draw) {
  const int64_t length = model.config().length;
  if (tokens.size(1) <= length) return known;
  return at::cat({known.narrow(1, 0, length),
                  losses_in_context(model, tokens, targets, length, length, draw)},
                 1);
}

}  // namespace lagwise
