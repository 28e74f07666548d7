#include "lagwise/train/memory_needed.h"

#include <cmath>
#include <stdexcept>

#include "lagwise/core/usable_memory.h"

namespace lagwise {
namespace {

std::string gigabytes(double bytes) {
  return std::to_string(static_cast<int64_t>(std::ceil(bytes / 1e9))) + " GB";
}

}  // namespace

double least_parameters(const ModelConfig& model) {
  const auto dim = static_cast<double>(model.dim);
  const double inner =
      model.feed_forward > 0 ? static_cast<double>(model.feed_forward) : 4 * dim;
  const auto heads = static_cast<double>(model.heads);
  const double head_rows =
      static_cast<double>(model.key_width()) + static_cast<double>(model.value_width());
  const double block = 2 * dim * heads * head_rows + 2 * dim * inner;
  const auto names = static_cast<double>(model.patch > 1 ? 0 : model.vocabulary);
  return names * dim + static_cast<double>(model.layers) * block;
}

double least_bytes(const Recipe& recipe, const ModelConfig& model) {
  constexpr double kNumber = sizeof(float);
  // Leaves are computed one after another, and a group of processes shares the columns.
  const double rows = static_cast<double>(recipe.train.batch) /
                      static_cast<double>(recipe.train.leaves) *
                      static_cast<double>(model.length) /
                      static_cast<double>(recipe.train.sequence_ranks) *
                      static_cast<double>(model.layers);
  return kNumber *
         (4 * least_parameters(model) + rows * static_cast<double>(model.dim));
}

void check_memory(const Recipe& recipe, const ModelConfig& model) {
  const double needed = least_bytes(recipe, model), there = usable_memory();
  if (there <= 0 || needed <= there) return;
  const auto named = [](const char* key, int64_t value) {
    return std::string(key) + " = " + std::to_string(value);
  };
  throw std::invalid_argument(
      named("model.dim", model.dim) + ", " + named("model.layers", model.layers) +
      ", " + named("model.heads", model.heads) + ", " +
      named("model.key_dim", model.key_dim) + ", " +
      named("model.value_dim", model.value_dim) + ", " +
      named("model.feed_forward", model.feed_forward) + ", " +
      named("train.batch", recipe.train.batch) + ", " +
      named("data.length", recipe.data.length) + ": training takes at least " +
      gigabytes(needed) + " of memory, the machine has " + gigabytes(there));
}

}  // namespace lagwise
