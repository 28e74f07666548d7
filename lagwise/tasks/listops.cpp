// ListOps: what is the value of "[MAX 2 [MIN 4 7 ] 0 ]"? Ten classes.
//
//     data.path empty   made by the rules of the Long Range Arena (data/sources/listops.h)
//     a folder          basic_train.tsv, basic_val.tsv, basic_test.tsv
//     a file            one such table, dealt to the three splits
//     a prepared set    of `lagwise data listops`
//
// Made rows are longer than length / 4 and shorter than length: with length = 2000 that
// is the Arena's task.

#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/delimited.h"
#include "lagwise/data/sources/listops_examples.h"
#include "lagwise/data/sources/listops_expression.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kListopsTask = "listops";

data::ListopsMaking listops_making(const TaskConfig& config, Spec& options) {
  data::ListopsMaking making;
  making.train = take_count(options, "train", 10000);
  making.valid = take_count(options, "valid", 500);
  making.test = take_count(options, "test", 1000);
  making.rules.longer_than =
      static_cast<int>(take_count(options, "longer_than", config.length / 4));
  making.rules.shorter_than =
      static_cast<int>(take_count(options, "shorter_than", config.length));
  making.rules.max_depth = static_cast<int>(take_count(options, "max_depth", 10));
  making.rules.max_arguments = static_cast<int>(take_count(options, "max_args", 10));
  making.seed = config.seed;
  options.finish();  // before the work
  return making;
}

data::ExampleSet listops_examples(const TaskConfig& config, Spec& options) {
  if (!config.path.empty() && data::is_shard_set(config.path))
    return {config.path, kListopsTask, {}};
  data::ExampleSet set(data::ExampleLayout{});
  const auto gather = [&](const std::string& split, const data::Example& example,
                          double) { set.add(split, example); };
  if (config.path.empty())
    data::make_listops_examples(listops_making(config, options), gather);
  else
    data::read_listops_examples(config.path, gather);
  return set;
}

std::unique_ptr<Task> make_listops(const TaskConfig& config, Spec& options) {
  return std::make_unique<Classification>(
      ClassificationFacts{.name = kListopsTask,
                          .vocabulary = data::kListopsSymbols,
                          .classes = 10,
                          .length = config.length,
                          .seed = config.seed},
      listops_examples(config, options));
}

/// An expression a line.
std::vector<Unlabelled> unlabelled_expressions(const std::string& name,
                                               data::Bytes bytes, const ModelConfig&,
                                               Spec&) {
  std::vector<Unlabelled> expressions;
  data::DelimitedReader lines(name, bytes, {'\n', false});
  int64_t number = 0;
  for (std::vector<std::string> line; lines.next(line);) {
    ++number;
    try {
      const std::vector<int32_t> symbols = data::listops_symbols(line[0]);
      expressions.push_back(
          {name + ":" + std::to_string(number), {symbols.begin(), symbols.end()}});
    } catch (const std::invalid_argument& error) {
      throw DataError(name + ", row " + std::to_string(number),
                      static_cast<int64_t>(lines.row_offset()),
                      "an expression of ListOps: " + std::string(error.what()));
    }
  }
  return expressions;
}

const RegisterTask listops_registered({
    .name = kListopsTask,
    .summary = "the value of nested lists: made, or the Long Range Arena's tables",
    .metric = "accuracy",
    .make = make_listops,
    .unlabelled = unlabelled_expressions,
});

}  // namespace
}  // namespace lagwise
