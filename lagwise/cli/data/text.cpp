// `lagwise data text`: labelled text as bytes, or as the tokens of a tokenizer.

#include <memory>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/data/tokenizer_flag.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sources/text_examples.h"
#include "lagwise/data/text/token_kind.h"

namespace lagwise::cli {
namespace {

constexpr int64_t kMostClasses = 1000;  // that a table may name

struct TextFlags {
  std::string out, tokens = "byte", tokenizer;
  data::TextReading reading;
};

/// The tokenizer that was given, or one learned from the texts to train on; nullptr:
/// bytes.
std::unique_ptr<data::Tokenizer> text_tokenizer(const TextFlags& flags) {
  if (!flags.tokenizer.empty()) return tokenizer_from(flags.tokenizer);
  return data::learn_tokenizer(
      data::parse_token_kind(flags.tokens), [&](const auto& take) {
        data::read_text_examples(flags.reading, [&](const std::string& split,
                                                    const data::Example& text, double) {
          if (split == "train") take(std::string(text.first.begin(), text.first.end()));
        });
      });
}

void prepare_text(const TextFlags& flags) {
  const auto tokenizer = text_tokenizer(flags);
  prepare_examples(
      {.out = flags.out,
       .task = "text",
       .classes = kMostClasses,
       .tokenizer = tokenizer.get(),
       .manifest = {"labelled text from " + flags.reading.path, "text", 256, {}, {}}},
      [&](data::ExampleWriter& writer, const data::VisitExample& visit) {
        writer.note_classes(data::read_text_examples(flags.reading, visit));
      });
}

void add_data_text(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "text", "Labelled text, as bytes or tokens: aclImdb's folders, TSV, CSV, JSONL");
  const auto flags = std::make_shared<TextFlags>();
  add_path(*app, flags->reading.path, "A folder or a table")->required();
  add_out(*app, flags->out);
  add_part(*app, "--valid", flags->reading.valid,
           "The part of train to validate on, where no file says it");
  add_part(*app, "--test", flags->reading.test, "The part of a single file to test on");
  app->add_option("--text", flags->reading.text_column, "The column with the text")
      ->type_name("NAME");
  app->add_option("--label", flags->reading.label_column, "The column with the label")
      ->type_name("NAME");
  add_tokenizer_flag(*app, flags->tokenizer, "in place of a new one")
      ->excludes(add_tokens_flag(*app, flags->tokens, "the texts to train on"));
  app->callback([flags] { prepare_text(*flags); });
}

const RegisterVerb data_text_registered({.name = "data text",
                                         .place = 10,
                                         .add = add_data_text});

}  // namespace
}  // namespace lagwise::cli
