// Do two texts belong together? Read byte by byte, or in the tokens of a set that was
// prepared with a tokenizer, each by the same encoder.
//
//     tables (.tsv)    papers that cite each other, as the Long Range Arena has them
//     a text corpus    passages of `length` bytes from one article or from two, made
//     a prepared set   of `lagwise data retrieval`
//
// (data/sources/retrieval_examples.h). Texts are cut at `length`.

#include <stdexcept>

#include "lagwise/data/formats/delimited.h"
#include "lagwise/data/sources/retrieval_examples.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/set_tokenizer.h"
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

std::unique_ptr<Task> make_retrieval(const TaskConfig& config, Spec& options) {
  need_path(kRetrievalTask, config.path);
  ClassificationFacts facts{.name = kRetrievalTask,
                            .vocabulary = 256,
                            .classes = 2,
                            .length = config.length,
                            .seed = config.seed};
  if (data::is_shard_set(config.path)) {
    data::ExampleSet set(config.path, kRetrievalTask, kTwoPassages);
    take_set_tokenizer(config.path, set, facts);
    return std::make_unique<Classification>(facts, std::move(set));
  }
  data::ExampleSet set(kTwoPassages);
  const auto gather = [&](const std::string& split, const data::Example& example,
                          double) { set.add(split, example); };
  if (data::is_retrieval_table(config.path))
    data::read_retrieval_examples(config.path, gather);
  else
    data::make_passage_examples(retrieval_making(config, options), gather);
  return std::make_unique<Classification>(facts, std::move(set));
}

/// Two texts a line with a tab between, or a table like those of AAN, whose labels are
/// passed over.
std::vector<Unlabelled> unlabelled_passages(const std::string& name, data::Bytes bytes,
                                            const ModelConfig&, Spec&) {
  std::vector<Unlabelled> pairs;
  data::DelimitedReader rows(name, bytes, {});
  const auto tokens = [](const std::string& text) -> std::vector<int64_t> {
    const data::Bytes as_bytes = data::bytes_of(text);
    return {as_bytes.begin(), as_bytes.end()};
  };
  for (std::vector<std::string> row; rows.next(row);) {
    if (row.size() != 2 && row.size() != 5)
      rows.fail("two texts with a tab between, or five columns, got " +
                std::to_string(row.size()));
    const size_t first = row.size() - 2;
    pairs.push_back({name + ":" + std::to_string(pairs.size() + 1), tokens(row[first]),
                     tokens(row[first + 1])});
  }
  return pairs;
}

const RegisterTask retrieval_registered({
    .name = kRetrievalTask,
    .summary = "do two texts belong together, by bytes or tokens: AAN tables, passages "
               "of a corpus",
    .metric = "accuracy",
    .make = make_retrieval,
    .unlabelled = unlabelled_passages,
});

}  // namespace
}  // namespace lagwise
