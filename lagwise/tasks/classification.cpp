#include "lagwise/tasks/classification.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/padded.h"

namespace lagwise {
namespace {

constexpr int64_t kMostClasses = 1 << 16;  // a model has a row of weights for each

}  // namespace

Classification::Classification(ClassificationFacts facts, data::ExampleSet examples)
    : facts_(std::move(facts)), examples_(std::move(examples)) {
  examples_.expect_vocabulary(facts_.vocabulary);
  if (facts_.classes > kMostClasses)
    throw DataError(facts_.name, -1,
                    "at most " + std::to_string(kMostClasses) + " classes, got " +
                        std::to_string(facts_.classes));
  for (const std::string& name : examples_.splits()) {
    const data::ExampleSplit& split = examples_.split(name);
    for (int64_t i = 0; i < split.size(); ++i) {
      if (const int label = split.label(i); label < 0 || label >= facts_.classes)
        throw DataError(facts_.name + " " + name, -1,
                        "labels from 0 to " + std::to_string(facts_.classes - 1) +
                            ", got " + std::to_string(label));
      if (!facts_.grid.empty() && split.length(i) != facts_.length)
        throw DataError(facts_.name + " " + name, -1,
                        std::to_string(facts_.length) + " numbers an image, got " +
                            std::to_string(split.length(i)));
    }
  }
  if (!examples_.has("train") || examples_.split("train").size() == 0)
    throw DataError(facts_.name, -1, "examples to train on, got none");
}

void Classification::shape(ModelConfig& config) const {
  config.model = examples_.layout().paired ? "dual_encoder" : "classifier";
  config.vocabulary = facts_.vocabulary;
  config.classes = facts_.classes;
  config.grid = facts_.grid;
  config.patch = facts_.patch;
  config.length = facts_.length / facts_.patch;
}

Batch Classification::train_batch(int64_t step, int64_t micro_step, Rows rows) const {
  const data::ExampleSplit& split = examples_.split("train");
  std::vector<int64_t> chosen;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    data::Dice dice = row_dice(facts_.seed, step, micro_step, row);
    chosen.push_back(pick(dice, split.size()));
  }
  return gather(split, chosen, facts_.length);
}

int64_t Classification::size(const std::string& split, int64_t) const {
  return examples_.split(split).size();
}

Batch Classification::eval_batch(const std::string& split, int64_t begin, int64_t end,
                                 int64_t length) const {
  const data::ExampleSplit& from = examples_.split(split);
  if (begin < 0 || begin >= end || end > from.size())
    throw std::invalid_argument(facts_.name + ": expected examples within 0 to " +
                                std::to_string(from.size()) + " of " + split);
  std::vector<int64_t> chosen;
  for (int64_t i = begin; i < end; ++i) chosen.push_back(i);
  return gather(from, chosen, length > 0 ? length : facts_.length);
}

Batch Classification::gather(const data::ExampleSplit& split,
                             const std::vector<int64_t>& chosen, int64_t length) const {
  Batch batch;
  batch.targets = at::empty({static_cast<int64_t>(chosen.size())}, at::kLong);
  for (size_t i = 0; i < chosen.size(); ++i)
    batch.targets.data_ptr<int64_t>()[i] = split.label(chosen[i]);
  const auto rows_of = [&](int part) {
    std::vector<std::vector<int64_t>> rows;
    for (const int64_t example : chosen) {
      const int64_t whole = split.length(example, part);
      const int64_t kept = facts_.grid.empty() ? std::min(whole, length) : whole;
      split.read(example, part, 0, rows.emplace_back(static_cast<size_t>(kept)));
    }
    return rows;
  };
  const auto first = rows_of(0);
  batch.tokens = padded(first, 0), batch.lengths = lengths_of(first);
  if (examples_.layout().paired) {
    const auto second = rows_of(1);
    batch.source = padded(second, 0), batch.source_lengths = lengths_of(second);
  }
  return batch;
}

std::optional<double> Classification::guess(const std::string& split) const {
  const auto counts = [&](const std::string& name) {
    std::vector<int64_t> of(static_cast<size_t>(facts_.classes), 0);
    const data::ExampleSplit& from = examples_.split(name);
    for (int64_t i = 0; i < from.size(); ++i) ++of[static_cast<size_t>(from.label(i))];
    return of;
  };
  const std::vector<int64_t> train = counts("train"), here = counts(split);
  const auto often = std::ranges::max_element(train) - train.begin();
  return static_cast<double>(here[static_cast<size_t>(often)]) /
         static_cast<double>(std::max<int64_t>(size(split), 1));
}

double Classification::value(const Loss& total) const {
  return static_cast<double>(total.right) /
         static_cast<double>(std::max<int64_t>(total.count, 1));
}

}  // namespace lagwise
