// `lagwise data text`: labelled text as bytes.

#include <memory>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sources/text_examples.h"

namespace lagwise::cli {
namespace {

constexpr int64_t kMostClasses = 1000;  // that a table may name

struct TextFlags {
  std::string out;
  data::TextReading reading;
};

void prepare_text(const TextFlags& flags) {
  prepare_examples(
      {.out = flags.out,
       .task = "text",
       .manifest = {"labelled text from " + flags.reading.path, "text", 256, {}, {}},
       .classes = kMostClasses},
      [&](data::ExampleWriter& writer, const data::VisitExample& visit) {
        writer.note_classes(data::read_text_examples(flags.reading, visit));
      });
}

void add_data_text(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "text", "Labelled text, by its bytes: aclImdb's folders, TSV, CSV, JSONL");
  const auto flags = std::make_shared<TextFlags>();
  add_path(*app, flags->reading.path, "A folder or a table")->required();
  add_out(*app, flags->out);
  app->add_option("--valid", flags->reading.valid,
                  "The part of train to validate on, where no file says it")
      ->check(fraction())
      ->capture_default_str()
      ->type_name("FRACTION");
  app->add_option("--test", flags->reading.test, "The part of a single file to test on")
      ->check(fraction())
      ->capture_default_str()
      ->type_name("FRACTION");
  app->add_option("--text", flags->reading.text_column, "The column with the text")
      ->type_name("NAME");
  app->add_option("--label", flags->reading.label_column, "The column with the label")
      ->type_name("NAME");
  app->callback([flags] { prepare_text(*flags); });
}

const RegisterVerb data_text_registered({.name = "data text",
                                         .place = 10,
                                         .add = add_data_text});

}  // namespace
}  // namespace lagwise::cli
