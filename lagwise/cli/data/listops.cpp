// `lagwise data listops`: makes ListOps by the rules of the Long Range Arena, or reads
// its tables.

#include <fmt/format.h>

#include <memory>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sources/listops_examples.h"
#include "lagwise/data/sources/listops_expression.h"

namespace lagwise::cli {
namespace {

struct ListopsFlags {
  std::string out, path;
  data::ListopsMaking making{
      .train = 96000, .valid = 2000, .test = 2000, .seed = 0, .rules = {}};
  bool tsv = false;
};

std::string source_of(const ListopsFlags& flags) {
  if (!flags.path.empty()) return "ListOps from " + flags.path;
  const data::ListopsRules& rules = flags.making.rules;
  return fmt::format(
      "ListOps, made: {} train, {} valid, {} test, seed {}, depth {}, arguments {}, "
      "length {} to {}",
      flags.making.train, flags.making.valid, flags.making.test, flags.making.seed,
      rules.max_depth, rules.max_arguments, rules.longer_than + 1,
      rules.shorter_than - 1);
}

void make_set(const ListopsFlags& flags) {
  prepare_examples(
      {.out = flags.out,
       .task = "listops",
       .classes = 10,
       .manifest = {source_of(flags), "listops", data::kListopsSymbols, {}, {}}},
      [&](data::ExampleWriter&, const data::VisitExample& visit) {
        if (flags.path.empty())
          data::make_listops_examples(flags.making, visit);
        else
          data::read_listops_examples(flags.path, visit);
      });
}

/// The same rows as the set, as the Long Range Arena's own tables.
void make_tables(const ListopsFlags& flags) {
  const StopSignal listening;
  data::NewFolder folder(flags.out);
  data::ListopsGenerator generator(flags.making.seed, flags.making.rules);
  const auto write = [&](const char* name, int64_t rows) {
    data::write_listops(folder.path() + "/" + name, generator, rows);
    StopSignal::check("stopped; nothing was written");
  };
  write("basic_test.tsv", flags.making.test);
  write("basic_val.tsv", flags.making.valid);
  write("basic_train.tsv", flags.making.train);
  folder.commit();
  fmt::print(
      "{}: basic_train.tsv, basic_val.tsv, basic_test.tsv with {}, {} and {} rows\n",
      folder.name(), flags.making.train, flags.making.valid, flags.making.test);
}

void add_data_listops(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "listops", "ListOps: made by the rules of the Long Range Arena, or its tables");
  const auto flags = std::make_shared<ListopsFlags>();
  data::ListopsMaking& making = flags->making;
  CLI::Option* path = add_path(*app, flags->path,
                               "Tables to read, a folder or a file; none: make rows");
  add_out(*app, flags->out);
  const auto number = [&](const char* name, auto& value, int least, int most,
                          const char* what) {
    add_making(*app, *path, name, value, least, most, what);
  };
  number("--train", making.train, 1, 100000000, "Rows of the split train");
  number("--valid", making.valid, 0, 100000000, "Rows of the split valid");
  number("--test", making.test, 0, 100000000, "Rows of the split test");
  number("--seed", making.seed, 0, INT32_MAX, "The same seed gives the same rows");
  number("--longer-than", making.rules.longer_than, 0, 1000000, "Symbols, excluded");
  number("--shorter-than", making.rules.shorter_than, 2, 1000000, "Symbols, excluded");
  number("--max-depth", making.rules.max_depth, 1, 100, "At most so many levels");
  number("--max-args", making.rules.max_arguments, 2, 100, "Arguments of an operator");
  app->add_flag("--tsv", flags->tsv, "Write the Arena's tables instead of a set")
      ->excludes(path);
  app->callback([flags] { flags->tsv ? make_tables(*flags) : make_set(*flags); });
}

const RegisterVerb data_listops_registered({.name = "data listops",
                                            .place = 5,
                                            .add = add_data_listops});

}  // namespace
}  // namespace lagwise::cli
