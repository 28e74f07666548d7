// `lagwise data retrieval`: pairs of texts, read or made from a corpus, as bytes or as the
// tokens of a tokenizer.

#include <fmt/format.h>

#include <memory>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/data/tokenizer_flag.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sources/retrieval_examples.h"

namespace lagwise::cli {
namespace {

struct RetrievalFlags {
  std::string out, tokenizer;
  data::PassageMaking making{.path = "",
                             .train = 10000,
                             .valid = 500,
                             .test = 1000,
                             .length = 1000,
                             .seed = 0};
};

std::string source_of(const data::PassageMaking& making, bool tables) {
  if (tables) return "pairs of texts from " + making.path;
  return fmt::format("passages of {} bytes from {}, seed {}", making.length,
                     making.path, making.seed);
}

void prepare_retrieval(const RetrievalFlags& flags) {
  const bool tables = data::is_retrieval_table(flags.making.path);
  const auto tokenizer =
      flags.tokenizer.empty() ? nullptr : tokenizer_from(flags.tokenizer);
  prepare_examples(
      {.out = flags.out,
       .task = "retrieval",
       .layout = {.labelled = true, .paired = true},
       .classes = 2,
       .tokenizer = tokenizer.get(),
       .manifest = {source_of(flags.making, tables), "retrieval", 256, {}, {}}},
      [&](data::ExampleWriter&, const data::VisitExample& visit) {
        if (tables)
          data::read_retrieval_examples(flags.making.path, visit);
        else
          data::make_passage_examples(flags.making, visit);
      });
}

void add_data_retrieval(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "retrieval", "Pairs of texts: AAN's tables, or passages of a text corpus");
  const auto flags = std::make_shared<RetrievalFlags>();
  data::PassageMaking& making = flags->making;
  add_path(*app, making.path, "Tables (.tsv), or text: WikiText, a folder of .txt")
      ->required();
  add_out(*app, flags->out);
  const auto number = [&](const char* name, auto& value, int least, int most,
                          const char* what) {
    app->add_option(name, value, what)
        ->check(whole_number(least, most))
        ->capture_default_str()
        ->type_name("N");
  };
  number("--train", making.train, 1, 100000000, "Pairs to make for the split train");
  number("--valid", making.valid, 0, 100000000, "Pairs to make for the split valid");
  number("--test", making.test, 0, 100000000, "Pairs to make for the split test");
  number("--length", making.length, 1, 1000000, "Bytes of a passage to make");
  number("--seed", making.seed, 0, INT32_MAX, "The same seed makes the same pairs");
  add_tokenizer_flag(*app, flags->tokenizer, "in place of bytes");
  app->callback([flags] { prepare_retrieval(*flags); });
}

const RegisterVerb data_retrieval_registered({.name = "data retrieval",
                                              .place = 9,
                                              .add = add_data_retrieval});

}  // namespace
}  // namespace lagwise::cli
