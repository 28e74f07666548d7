// ListOps: what is the value of "[MAX 2 [MIN 4 7 ] 0 ]"? Ten classes.
//
//     data.path empty   made by the rules of the Long Range Arena (data/listops.h)
//     a folder          basic_train.tsv, basic_val.tsv, basic_test.tsv
//     a file            one such table, dealt to the three splits
//     a prepared set    of `lagwise data listops`
//
// Made rows are longer than length / 4 and shorter than length: with length = 2000 that
// is the Arena's task.

#include <algorithm>
#include <stdexcept>

#include "lagwise/data/listops_examples.h"
#include "lagwise/data/listops_expression.h"
#include "lagwise/tasks/classification.h"

namespace lagwise {
namespace {

constexpr const char* kName = "listops";

int64_t rows(Spec& options, const char* key, int64_t fallback) {
  const int64_t rows = options.take(key, fallback);
  if (rows < 0 || rows > 100000000)
    throw std::invalid_argument(std::string("listops: ") + key +
                                ": expected 0 to 100000000 rows, got " +
                                std::to_string(rows));
  return rows;
}

int bound(Spec& options, const char* key, int64_t fallback) {
  const int64_t value = options.take(key, fallback);
  if (value < 0 || value > 1000000)
    throw std::invalid_argument(std::string("listops: ") + key +
                                ": expected 0 to 1000000, got " +
                                std::to_string(value));
  return static_cast<int>(value);
}

data::ListopsMaking making(const TaskConfig& config, Spec& options) {
  data::ListopsMaking making;
  making.train = rows(options, "train", 10000);
  making.valid = rows(options, "valid", 500);
  making.test = rows(options, "test", 1000);
  making.rules.longer_than = bound(options, "longer_than", config.length / 4);
  making.rules.shorter_than = bound(options, "shorter_than", config.length);
  making.rules.max_depth = bound(options, "max_depth", 10);
  making.rules.max_arguments = bound(options, "max_args", 10);
  making.seed = config.seed;
  options.finish();  // before the work
  return making;
}

data::ExampleSet examples(const TaskConfig& config, Spec& options) {
  if (!config.path.empty() && data::is_shard_set(config.path))
    return {config.path, kName, {}};
  data::ExampleSet set(data::ExampleLayout{});
  const auto gather = [&](const std::string& split, const data::Example& example,
                          double) { set.add(split, example); };
  if (config.path.empty())
    data::make_listops_examples(making(config, options), gather);
  else
    data::read_listops_examples(config.path, gather);
  return set;
}

std::unique_ptr<Task> make(const TaskConfig& config, Spec& options) {
  return std::make_unique<Classification>(
      ClassificationFacts{.name = kName,
                          .vocabulary = data::kListopsSymbols,
                          .classes = 10,
                          .length = config.length,
                          .seed = config.seed},
      examples(config, options));
}

const RegisterTask registered({
    .name = kName,
    .summary = "the value of nested lists: made, or the Long Range Arena's tables",
    .metric = "accuracy",
    .make = make,
});

}  // namespace
}  // namespace lagwise
