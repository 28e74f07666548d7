// Do two texts belong together? Read byte by byte, each by the same encoder.
//
//     tables (.tsv)    papers that cite each other, as the Long Range Arena has them
//     a text corpus    passages of `length` bytes from one article or from two, made
//     a prepared set   of `lagwise data retrieval`
//
// (data/sources/retrieval_examples.h). Texts are cut at `length`.

#include <stdexcept>

#include "lagwise/data/sources/retrieval_examples.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kName = "retrieval";
constexpr data::ExampleLayout kLayout{.labelled = true, .paired = true};

data::PassageMaking making(const TaskConfig& config, Spec& options) {
  data::PassageMaking making;
  making.path = config.path;
  making.train = take_count(options, "train", 10000);
  making.valid = take_count(options, "valid", 500);
  making.test = take_count(options, "test", 1000);
  making.length = config.length;
  making.seed = config.seed;
  options.finish();  // before the work
  return making;
}

data::ExampleSet examples(const TaskConfig& config, Spec& options) {
  if (data::is_shard_set(config.path)) return {config.path, kName, kLayout};
  data::ExampleSet set(kLayout);
  const auto gather = [&](const std::string& split, const data::Example& example,
                          double) { set.add(split, example); };
  if (data::is_retrieval_table(config.path))
    data::read_retrieval_examples(config.path, gather);
  else
    data::make_passage_examples(making(config, options), gather);
  return set;
}

std::unique_ptr<Task> make(const TaskConfig& config, Spec& options) {
  need_path(kName, config.path);
  return std::make_unique<Classification>(ClassificationFacts{.name = kName,
                                                              .vocabulary = 256,
                                                              .classes = 2,
                                                              .length = config.length,
                                                              .seed = config.seed},
                                          examples(config, options));
}

const RegisterTask registered({
    .name = kName,
    .summary = "do two texts belong together: AAN tables, passages of a text corpus",
    .metric = "accuracy",
    .make = make,
});

}  // namespace
}  // namespace lagwise
