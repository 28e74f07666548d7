// `lagwise data pathfinder`: makes Pathfinder by the rules of the Long Range Arena, or
// reads its folders.

#include <fmt/format.h>

#include <memory>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sources/pathfinder_examples.h"

namespace lagwise::cli {
namespace {

struct PathfinderFlags {
  std::string out, path;
  data::PathfinderMaking making{.train = 160000,
                                .valid = 20000,
                                .test = 20000,
                                .seed = 0,
                                .patch = 1,
                                .rules = {}};
};

std::string source_of(const PathfinderFlags& flags) {
  if (!flags.path.empty()) return "Pathfinder from " + flags.path;
  return fmt::format(
      "Pathfinder, made: {} train, {} valid, {} test, seed {}, contours of {}",
      flags.making.train, flags.making.valid, flags.making.test, flags.making.seed,
      flags.making.rules.contour_length);
}

void prepare_pathfinder(const PathfinderFlags& flags) {
  prepare_examples({.out = flags.out,
                    .task = "pathfinder",
                    .classes = 2,
                    .manifest = {source_of(flags), "pathfinder", 256, {}, {}}},
                   [&](data::ExampleWriter& writer, const data::VisitExample& visit) {
                     int64_t side = flags.making.rules.side;
                     if (flags.path.empty())
                       data::make_pathfinder_examples(flags.making, visit);
                     else
                       side = data::read_pathfinder_examples(flags.path,
                                                             flags.making.patch, visit);
                     writer.note("side", side);
                     writer.note("patch", flags.making.patch);
                   });
}

void add_data_pathfinder(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "pathfinder",
      "Pathfinder: made by the rules of the Long Range Arena, or its images");
  const auto flags = std::make_shared<PathfinderFlags>();
  data::PathfinderMaking& making = flags->making;
  CLI::Option* path =
      add_path(*app, flags->path, "A folder with metadata and imgs; none: make images");
  add_out(*app, flags->out);
  const auto number = [&](const char* name, auto& value, int least, int most,
                          const char* what) {
    add_making(*app, *path, name, value, least, most, what);
  };
  number("--train", making.train, 1, 100000000, "Images of the split train");
  number("--valid", making.valid, 0, 100000000, "Images of the split valid");
  number("--test", making.test, 0, 100000000, "Images of the split test");
  number("--seed", making.seed, 0, INT32_MAX, "The same seed gives the same images");
  number("--contour", making.rules.contour_length, 3, 16,
         "Paddles of a long snake: 14 is hard, 9 intermediate, 6 easy");
  app->add_option("--patch", making.patch,
                  "Side of a square of pixels that becomes one row of the model")
      ->capture_default_str();
  app->callback([flags] { prepare_pathfinder(*flags); });
}

const RegisterVerb data_pathfinder_registered({.name = "data pathfinder",
                                               .place = 8,
                                               .add = add_data_pathfinder});

}  // namespace
}  // namespace lagwise::cli
