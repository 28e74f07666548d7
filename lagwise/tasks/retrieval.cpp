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

constexpr const char* kRetrievalTask = "retrieval";
constexpr data::ExampleLayout kTwoPassages{.labelled = true, .paired = true};

data::PassageMaking retrieval_making(const TaskConfig& config, Spec& options) {
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

data::ExampleSet retrieval_examples(const TaskConfig& config, Spec& options) {
  if (data::is_shard_set(config.path))
    return {config.path, kRetrievalTask, kTwoPassages};
  data::ExampleSet set(kTwoPassages);
  const auto gather = [&](const std::string& split, const data::Example& example,
                          double) { set.add(split, example); };
  if (data::is_retrieval_table(config.path))
    data::read_retrieval_examples(config.path, gather);
  else
    data::make_passage_examples(retrieval_making(config, options), gather);
  return set;
}

std::unique_ptr<Task> make_retrieval(const TaskConfig& config, Spec& options) {
  need_path(kRetrievalTask, config.path);
  return std::make_unique<Classification>(ClassificationFacts{.name = kRetrievalTask,
                                                              .vocabulary = 256,
                                                              .classes = 2,
                                                              .length = config.length,
                                                              .seed = config.seed},
                                          retrieval_examples(config, options));
}

const RegisterTask retrieval_registered({
    .name = kRetrievalTask,
    .summary = "do two texts belong together: AAN tables, passages of a text corpus",
    .metric = "accuracy",
    .make = make_retrieval,
});

}  // namespace
}  // namespace lagwise
