// The class of a text, read byte by byte: reviews of films in the folders of aclImdb,
// or any table with a text and a label (data/sources/text_examples.h). Texts are cut at
// `length`.

#include <algorithm>
#include <stdexcept>

#include "lagwise/data/sources/text_examples.h"
#include "lagwise/tasks/classification.h"
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
    facts.classes = set.number("classes");
    return std::make_unique<Classification>(facts, std::move(set));
  }
  data::ExampleSet set(data::ExampleLayout{});
  facts.classes = 2;
  data::read_text_examples(
      reading(config, options),
      [&](const std::string& split, const data::Example& example, double) {
        facts.classes = std::max<int64_t>(facts.classes, example.label + 1);
        set.add(split, example);
      });
  return std::make_unique<Classification>(facts, std::move(set));
}

const RegisterTask text_registered({
    .name = kTextTask,
    .summary = "the class of a text, by its bytes: aclImdb, TSV, CSV",
    .metric = "accuracy",
    .make = make_text,
});

}  // namespace
}  // namespace lagwise
