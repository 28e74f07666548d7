#include "lagwise/tasks/made_sequences.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/padded.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

Batch batch_of_made(const std::vector<MadeSequence>& rows) {
  std::vector<std::vector<int64_t>> tokens, targets;
  for (const MadeSequence& row : rows)
    tokens.push_back(row.tokens), targets.push_back(row.targets);
  Batch batch;
  batch.tokens = padded(tokens, 0), batch.targets = padded(targets, -1);
  return batch;
}

/// 1, 2, 3; 0 are the dice of training.
int64_t number_of_split(const std::string& split) {
  constexpr std::array<const char*, 3> kSplits = {"train", "valid", "test"};
  const auto found = std::find(kSplits.begin(), kSplits.end(), split);
  if (found == kSplits.end())
    throw std::invalid_argument("no split '" + split +
                                "'; expected one of train, valid, test");
  return 1 + (found - kSplits.begin());
}

}  // namespace

MadeSequences::MadeSequences(const TaskConfig& config, Spec& options)
    : length_(config.length),
      examples_(take_count(options, "examples", 512)),
      seed_(config.seed) {
  options.finish();
  text_ = options.full_text();
  if (!config.path.empty())
    throw std::invalid_argument("data.path: expected none, since " + options.name() +
                                " makes its data, got " + config.path);
}

void MadeSequences::shape(ModelConfig& config) const {
  config.model = "decoder_lm";
  config.vocabulary = vocabulary(), config.classes = 0;
  config.length = length_;
}

Batch MadeSequences::made_batch(int64_t step, int64_t micro_step, Rows rows,
                                int64_t length) const {
  std::vector<MadeSequence> made;
  for (int64_t row = rows.begin; row < rows.end; ++row)
    made.push_back(make_for_training(row_dice(seed_, step, micro_step, row), length));
  return batch_of_made(made);
}

Batch MadeSequences::train_batch(int64_t step, int64_t micro_step, Rows rows) const {
  return made_batch(step, micro_step, rows, length_);
}

int64_t MadeSequences::size(const std::string& split, int64_t) const {
  number_of_split(split);
  return examples_;
}

void MadeSequences::check_range(const std::string& split, int64_t begin,
                                int64_t end) const {
  if (begin < 0 || begin >= end || end > size(split))
    throw std::invalid_argument("expected examples within 0 to " +
                                std::to_string(examples_) + " of " + split);
}

Batch MadeSequences::eval_batch(const std::string& split, int64_t begin, int64_t end,
                                int64_t length) const {
  check_range(split, begin, end);
  std::vector<MadeSequence> rows;
  for (int64_t i = begin; i < end; ++i)
    rows.push_back(make(example_dice(split, i), window(length)));
  return batch_of_made(rows);
}

uint64_t MadeSequences::hash() const {
  return data::fnv1a(data::bytes_of(text_ + " seed " + std::to_string(seed_)));
}

data::Dice MadeSequences::example_dice(const std::string& split, int64_t index) const {
  return data::Dice(Noise(seed_, streams::kData)
                        .at({.layer = number_of_split(split), .realisation = index}));
}

}  // namespace lagwise
