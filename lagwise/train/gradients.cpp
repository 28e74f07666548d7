#include "lagwise/train/gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>

#include "lagwise/dist/tree_sum.h"
#include "lagwise/ops/precision.h"
#include "lagwise/ops/recompute.h"
#include "lagwise/train/first_nonfinite.h"

namespace lagwise {
namespace {

/// Real tokens, those of the source too. `patch` numbers of a picture are one token.
int64_t tokens_of(const Batch& batch, int64_t patch) {
  const auto count = [](const at::Tensor& tokens, const at::Tensor& lengths) {
    if (!tokens.defined()) return int64_t{0};
    return lengths.defined() ? lengths.sum().item<int64_t>() : tokens.numel();
  };
  return (count(batch.tokens, batch.lengths) +
          count(batch.source, batch.source_lengths)) /
         patch;
}

}  // namespace

Gradients::Gradients(const Recipe& recipe, const Team& team, const Task& task,
                     Model& model, AdamW& optimiser)
    : recipe_(recipe),
      team_(team),
      task_(task),
      model_(model),
      optimiser_(optimiser),
      past_(recipe.train.past) {}

/// A leaf's rows of a micro-step, and of these our columns, with `past` tokens before
/// each of its windows.
Batch Gradients::next_batch(const Draw& draw, int64_t past, int64_t leaf) const {
  const Rows rows = team_.rows(leaf);
  Batch batch = past == 0 ? task_.train_batch(draw.step, draw.micro_step, rows)
                          : task_.train_windows(draw.step, draw.micro_step, rows,
                                                past + recipe_.data.length);
  batch.first_row = rows.begin;
  return team_.part(batch, model_.config().patch);
}

/// The loss that is trained on, in the precision of the recipe. Evaluation is in f32.
Loss Gradients::loss_of(const Batch& batch, int64_t past, const Draw& draw) const {
  const ops::WithPrecision here(
      recipe_.train.precision == "bf16" ? ops::Precision::bf16 : ops::Precision::full);
  const ops::WithRecompute less(recipe_.train.recompute);
  return past == 0 ? model_.loss(batch, draw)
                   : loss_after_past(model_, batch, recipe_.data.length, draw);
}

/// The gradients of the sum of a leaf's losses over all micro-steps.
void Gradients::backward_leaf(int64_t step, int64_t leaf,
                              const std::function<bool()>& stop, Own& own) {
  optimiser_.forget_gradients();
  Draw draw{recipe_.train.seed, step};
  double& sum = own.losses.emplace_back(0);
  for (; draw.micro_step < recipe_.train.accumulate; ++draw.micro_step) {
    own.stop = own.stop || stop();
    if (own.stop && team_.alone()) return;
    const int64_t past = past_.multiple(draw) * recipe_.data.length;
    const Batch batch = next_batch(draw, past, leaf);
    const Loss loss = loss_of(batch, past, draw);
    sum += loss.sum.item<double>();
    if (own.finite) own.batch = batch, own.draw = draw;
    own.finite = own.finite && std::isfinite(sum);
    if (!own.finite && team_.alone()) return;
    loss.sum.backward();
    const int64_t read = past * batch.tokens.size(0);
    own.targets += loss.count, own.read += read;
    own.tokens += tokens_of(batch, model_.config().patch) - read;
  }
}

/// From what each process found in its leaves to what all of them found. Losses are added
/// in the order of the leaves, whoever had them.
StepGradient Gradients::agreed(const Own& own) const {
  std::vector<double> mine = {
      own.stop ? 1.0 : 0.0, own.finite ? 0.0 : 1.0, static_cast<double>(own.targets),
      static_cast<double>(own.tokens), static_cast<double>(own.read)};
  const auto before = static_cast<int64_t>(mine.size());
  mine.insert(mine.end(), own.losses.begin(), own.losses.end());
  mine.resize(static_cast<size_t>(before + team_.own_leaves()));
  const at::Tensor found = team_.gather(
      at::from_blob(mine.data(), {static_cast<int64_t>(mine.size())}, at::kDouble));
  const auto all = found.accessor<double, 2>();
  const auto total = [&](int64_t column) {
    double sum = 0;
    for (int64_t rank = 0; rank < team_.size(); ++rank) sum += all[rank][column];
    return sum;
  };
  StepGradient step;
  step.stop = total(0) > 0;
  if (total(1) > 0) step.wrong = "the loss";
  step.targets = std::max<int64_t>(static_cast<int64_t>(total(2)), 1);
  step.tokens = static_cast<int64_t>(total(3));
  step.read = static_cast<int64_t>(total(4));
  for (int64_t leaf = 0; leaf < team_.groups() * team_.own_leaves(); ++leaf) {
    const int64_t first = leaf / team_.own_leaves() * team_.width();
    double sum = 0;  // over the columns of this leaf's rows
    for (int64_t rank = first; rank < first + team_.width(); ++rank)
      sum += all[rank][before + leaf % team_.own_leaves()];
    step.loss += sum;
  }
  return step;
}

StepGradient Gradients::gather(int64_t step, const std::function<bool()>& stop) {
  const bool as_tree = recipe_.train.leaves > 1 || !team_.alone();
  Own own;
  dist::TreeSum tree;
  for (int64_t i = 0; i < team_.own_leaves(); ++i) {
    backward_leaf(step, team_.first_leaf() + i, stop, own);
    if (team_.alone() && (own.stop || !own.finite)) break;
    if (as_tree) tree.add(optimiser_.flat_gradient());
  }
  StepGradient gradient = agreed(own);
  if (gradient.stop) return gradient;
  if (gradient.wrong.empty()) {
    if (as_tree) optimiser_.set_gradient(tree.total(team_.peers()));
    gradient.norm = optimiser_.gradient_norm() / static_cast<double>(gradient.targets);
    team_.share(gradient.norm);  // else an ulp between two machines would part them
    if (!std::isfinite(gradient.norm)) gradient.wrong = "the gradient";
  }
  if (!gradient.wrong.empty())
    gradient.where = first_nonfinite(model_, own.batch, own.draw);
  return gradient;
}

}  // namespace lagwise
