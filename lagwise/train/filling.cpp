#include "lagwise/train/filling.h"

#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/models/model.h"
#include "lagwise/train/evaluation_mode.h"

namespace lagwise {

std::vector<FilledGap> fill_gaps(Model& model, const Draw& draw,
                                 std::vector<int64_t>& tokens, int64_t top) {
  if (!model_row(model.config().model).fills)
    throw std::invalid_argument(
        "expected a model that fills in hidden tokens, encoder_lm, got " +
        model.config().model);
  const int64_t mask = model.config().vocabulary - 1;
  std::vector<int64_t> gaps;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] == mask) gaps.push_back(static_cast<int64_t>(i));
  if (gaps.empty()) throw std::invalid_argument("expected a gap to fill, got none");

  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  std::vector<FilledGap> filled;
  while (!gaps.empty()) {
    Batch batch;
    batch.tokens = at::tensor(tokens, at::kLong).unsqueeze(0);
    const at::Tensor rows =
        model.logits(batch, draw)[0].index_select(0, at::tensor(gaps, at::kLong));
    const at::Tensor shares = at::softmax(rows.to(at::kDouble), -1);  // [gaps, V]
    const auto [best, ids] =
        at::topk(shares, std::min<int64_t>(std::max<int64_t>(top, 1), shares.size(1)));
    const auto surest = best.select(1, 0).argmax().item<int64_t>();
    FilledGap gap{gaps[static_cast<size_t>(surest)], {}};
    for (int64_t k = 0; k < best.size(1); ++k)
      gap.candidates.push_back(
          {ids[surest][k].item<int64_t>(), best[surest][k].item<double>()});
    tokens[static_cast<size_t>(gap.position)] = gap.candidates[0].token;
    filled.push_back(std::move(gap));
    gaps.erase(gaps.begin() + surest);
  }
  std::ranges::sort(filled, {}, &FilledGap::position);
  return filled;
}

}  // namespace lagwise
