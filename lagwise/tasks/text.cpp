// The class of a text: reviews of films in the folders of aclImdb, or any table with a
// text and a label (data/sources/text_examples.h). It is read byte by byte, or in the
// tokens of a set that was prepared with a tokenizer. Texts are cut at `length`.

#include <stdexcept>

#include "lagwise/data/sets/text_file.h"
#include "lagwise/data/sources/text_examples.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/set_tokenizer.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kTextTask = "text";

data::TextReading reading(const TaskConfig& config, Spec& options) {
  data::TextReading reading;
  reading.path = config.path;
  reading.valid = take_fraction(options, "valid", reading.valid);
  reading.test = take_fraction(options, "test", reading.test);
  reading.text_column = options.take("text", "");
  reading.label_column = options.take("label", "");
  options.finish();  // before the work
  return reading;
}

std::unique_ptr<Task> make_text(const TaskConfig& config, Spec& options) {
  need_path(kTextTask, config.path);
  ClassificationFacts facts{.name = kTextTask,
                            .vocabulary = 256,
                            .length = config.length,
                            .seed = config.seed};
  if (data::is_shard_set(config.path)) {
    data::ExampleSet set(config.path, kTextTask, {});
    take_set_tokenizer(config.path, set, facts);
    facts.classes = set.number("classes");
    facts.class_names = set.class_names();
    return std::make_unique<Classification>(facts, std::move(set));
  }
  data::ExampleSet set(data::ExampleLayout{});
  facts.class_names = data::read_text_examples(
      reading(config, options),
      [&](const std::string& split, const data::Example& example, double) {
        set.add(split, example);
      });
  facts.classes = std::ssize(facts.class_names);
  return std::make_unique<Classification>(facts, std::move(set));
}

/// A table of texts, or one text.
std::vector<Unlabelled> unlabelled_texts(const std::string& name, data::Bytes bytes,
                                         const ModelConfig&, Spec& options) {
  if (!data::is_table_name(name)) {
    data::check_text(name, bytes);
    return {{name, {bytes.begin(), bytes.end()}}};
  }
  std::vector<Unlabelled> texts;
  data::TextColumns table(name, bytes, {data::text_column(options.take("text", ""))});
  for (std::vector<std::string> row; table.next(row);) {
    const data::Bytes text = data::bytes_of(row[0]);
    texts.push_back(
        {name + ":" + std::to_string(table.row()), {text.begin(), text.end()}});
  }
  return texts;
}

const RegisterTask text_registered({
    .name = kTextTask,
    .summary = "the class of a text, by bytes or tokens: aclImdb, TSV, CSV, JSONL",
    .metric = "accuracy",
    .make = make_text,
    .unlabelled = unlabelled_texts,
});

}  // namespace
}  // namespace lagwise
