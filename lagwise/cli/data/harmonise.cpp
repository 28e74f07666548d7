// `lagwise data harmonise`: Bach's chorales, soprano and the three voices under it.

#include <memory>

#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/music/chorale_tokens.h"

namespace lagwise::cli {
namespace {

struct HarmoniseFlags {
  std::string out, path;
};

void prepare_harmonise(const HarmoniseFlags& flags) {
  prepare_examples({.out = flags.out,
                    .task = "harmonise",
                    .layout = {.labelled = false, .paired = true},
                    .manifest = {"chorales from " + flags.path,
                                 "harmonise",
                                 data::kChoraleWords,
                                 data::chorale_words(),
                                 {}}},
                   [&](data::ExampleWriter&, const data::VisitExample& visit) {
                     data::read_chorale_examples(flags.path, visit);
                   });
}

void add_data_harmonise(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "harmonise", "Chorales, a soprano and three voices: Jsb16thSeparated.json");
  const auto flags = std::make_shared<HarmoniseFlags>();
  add_path(*app, flags->path, "The file, or the folder that holds it")->required();
  add_out(*app, flags->out);
  app->callback([flags] { prepare_harmonise(*flags); });
}

const RegisterVerb data_harmonise_registered({.name = "data harmonise",
                                              .place = 2,
                                              .add = add_data_harmonise});

}  // namespace
}  // namespace lagwise::cli
