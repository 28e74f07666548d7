// `lagwise data pairs`: pairs of texts, as bytes or pieces of words.

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/sources/dates.h"
#include "lagwise/data/sources/pair_examples.h"
#include "lagwise/data/text/token_kind.h"

namespace lagwise::cli {
namespace {

struct PairsFlags {
  std::string out, tokens = "byte", tokenizer;
  data::PairReading reading;
  data::DateMaking making;
};

void each_pair(const PairsFlags& flags, const data::VisitPair& visit) {
  if (!flags.reading.path.empty()) return data::read_pairs(flags.reading, visit);
  data::DateMaking making = flags.making;
  making.valid = flags.reading.valid, making.test = flags.reading.test;
  data::make_date_pairs(making, visit);
}

/// The tokenizer that was given, or one learned from both texts of the training pairs;
/// nullptr: bytes. Words are none for answers: one that is not known cannot be written.
std::unique_ptr<data::Tokenizer> pair_tokenizer(const PairsFlags& flags) {
  if (!flags.tokenizer.empty()) {
    auto tokenizer = data::load_tokenizer(flags.tokenizer);
    if (tokenizer->kind() != "bpe")
      throw DataError(flags.tokenizer, -1, "byte pairs, got " + tokenizer->kind());
    return tokenizer;
  }
  const data::TokenKind kind = data::parse_token_kind(flags.tokens);
  if (kind.name == "word")
    throw std::invalid_argument("--tokens: expected byte or bpe:N for pairs, got '" +
                                flags.tokens + "'");
  return data::learn_tokenizer(kind, [&](const auto& take) {
    each_pair(flags, [&](const data::Pair& pair) {
      if (pair.split == "train") take(pair.source), take(pair.target);
    });
  });
}

void print_longest(const std::string& folder) {
  const data::ExampleSet set(folder, data::kPairsScheme, data::kPairsLayout);
  int64_t source = 0, target = 0;
  for (const std::string& name : set.splits())
    for (int64_t i = 0; i < set.split(name).size(); ++i) {
      source = std::max(source, set.split(name).length(i, 0));
      target = std::max(target, set.split(name).length(i, 1));
    }
  fmt::print(
      "Two sequences are a pair. The longest source has {} tokens, the longest target "
      "{}: data.length of {} takes all.\n",
      source, target, std::max(source, target + 1));
}

void prepare_pairs(const PairsFlags& flags) {
  const auto tokenizer = pair_tokenizer(flags);
  const std::string from = flags.reading.path.empty()
                               ? fmt::format("dates, made: {}, seed {}",
                                             flags.making.pairs, flags.making.seed)
                               : "pairs from " + flags.reading.path;
  prepare_examples({.out = flags.out,
                    .task = "pairs",
                    .layout = data::kPairsLayout,
                    .tokenizer = tokenizer.get(),
                    .manifest = {from, data::kPairsScheme, 256, {}, {}}},
                   [&](data::ExampleWriter&, const data::VisitExample& visit) {
                     each_pair(flags, [&](const data::Pair& pair) {
                       visit(std::string(pair.split), data::pair_example(pair), -1);
                     });
                   });
  print_longest(flags.out);
}

void add_data_pairs(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "pairs", "Pairs of texts, source and target: TSV, CSV, JSONL; made: dates");
  const auto flags = std::make_shared<PairsFlags>();
  data::PairReading& reading = flags->reading;
  CLI::Option* path =
      add_path(*app, reading.path,
               "A table, or a folder of train, valid and test; none: dates are made");
  add_out(*app, flags->out);
  add_part(*app, "--valid", reading.valid,
           "The part to validate on, where no file says it");
  add_part(*app, "--test", reading.test, "The part of a single file to test on");
  app->add_option("--source", reading.source_column,
                  "The column with the source; source, src or input unless given")
      ->type_name("NAME");
  app->add_option("--target", reading.target_column,
                  "The column with the target; target, tgt or output unless given")
      ->type_name("NAME");
  CLI::Option* tokens =
      app->add_option("--tokens", flags->tokens,
                      "byte; bpe:N: N pieces of words, learned from both texts")
          ->check(token_kind())
          ->capture_default_str()
          ->type_name("KIND");
  app->add_option("--tokenizer", flags->tokenizer,
                  "The tokenizer.json of another set, or of Hugging Face's tokenizers "
                  "(byte-level BPE), in place of a new one")
      ->check(file_name())
      ->excludes(tokens)
      ->type_name("FILE");
  add_making(*app, *path, "--made", flags->making.pairs, 1, 100000000, "Dates to make");
  add_making(*app, *path, "--seed", flags->making.seed, 0, INT32_MAX,
             "The same seed makes the same dates");
  app->callback([flags] { prepare_pairs(*flags); });
}

const RegisterVerb data_pairs_registered({.name = "data pairs",
                                          .place = 7,
                                          .add = add_data_pairs});

}  // namespace
}  // namespace lagwise::cli
