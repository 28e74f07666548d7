// `lagwise data PATH`, which is `lagwise data look PATH`: what lies there, and how to go on.

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/sources/recognised.h"

namespace lagwise::cli {
namespace {

/// How to go on from data of a kind.
struct Way {
  const char* kind;
  const char* form;  ///< of the kind; empty: any
  const char* name;  ///< for people
  const char* recipe;
  const char* set = "";      ///< further words of `lagwise train`
  const char* prepare = "";  ///< options of `lagwise data KIND`, where that comes first
};

constexpr Way kWays[] = {
    {"midi", "", "music", "music-grooves", "", "--tokens groove"},
    {"language", "", "text to continue", "language-shakespeare"},
    {"text", "", "texts to classify", "text-imdb"},
    {"pairs", "", "texts to make of others", "pairs"},
    {"images", "mnist", "pictures to classify", "images-mnist"},
    {"images", "cifar10", "pictures to classify", "images-cifar10"},
    {"images", "", "pictures to classify", "images-mnist",
     " --set data.task=images:size=32,patch=2"},
    {"listops", "", "ListOps", "listops",
     " --set data.task=listops --set data.length=2000"},
    {"retrieval", "", "pairs of texts to compare", "retrieval-wikitext2"},
    {"pathfinder", "", "Pathfinder", "pathfinder", " --set data.task=pathfinder"},
    {"harmonise", "", "chorales to harmonise", "harmonise-jsb"},
    {"set", "bytes", "a set of `lagwise data language`", "language-shakespeare"},
    {"set", "tokenizer", "a set of `lagwise data language`", "language-wikitext2-bpe"},
    {"set", "text", "a set of `lagwise data text`", "text-imdb"},
    {"set", "pairs", "a set of `lagwise data pairs`", "pairs"},
    {"set", "images", "a set of `lagwise data images`", "images-mnist",
     " --set data.task=images"},
    {"set", "listops", "a set of `lagwise data listops`", "listops",
     " --set data.task=listops"},
    {"set", "retrieval", "a set of `lagwise data retrieval`", "retrieval-wikitext2"},
    {"set", "pathfinder", "a set of `lagwise data pathfinder`", "pathfinder",
     " --set data.task=pathfinder"},
    {"set", "harmonise", "a set of `lagwise data harmonise`", "harmonise-jsb"},
    {"set", "remi", "a set of music", "music-pop1k7"},
    {"set", "groove", "a set of music", "music-grooves"},
    {"set", "", "a set of music", "music-grooves", " --set data.task=music"},
};

const Way* way_of(const data::Recognised& found) {
  for (const Way& way : kWays)
    if (found.kind == way.kind && (!*way.form || found.form == way.form)) return &way;
  return nullptr;
}

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

void print_way(const Way& way, const data::Recognised& found) {
  std::string path = found.path;
  fmt::print("\nGo on with\n");
  if (*way.prepare) {
    const std::filesystem::path given = found.path;
    const auto last = given.has_filename() ? given : given.parent_path();
    const std::string set = last.filename().string() + "-set";
    fmt::print("  lagwise data {} {} {} --out {}\n", way.kind, shell_word(path),
               way.prepare, shell_word(set));
    path = set;
  }
  fmt::print("  lagwise train recipes/{}.toml --set {}{}", way.recipe,
             shell_word("data.path=" + path), way.set);
  if (found.length > 0) fmt::print(" --set data.length={}", found.length);
  fmt::print("\n");
}

void look(const std::string& path, const CLI::App& data_verb) {
  const data::Recognised found = data::recognise(path);
  const Way* const way = way_of(found);
  fmt::print("{}: {}\n", found.path, way ? way->name : "no kind of data that is known");
  for (const std::string& line : found.seen) fmt::print("  {}\n", line);
  if (way) return print_way(*way, found);
  fmt::print("\nWhat can be prepared:\n");
  for (const CLI::App* one : data_verb.get_subcommands(nullptr))
    if (one->get_name() != "look")
      fmt::print("  {:<12} {}\n", one->get_name(), one->get_description());
  throw DataError(found.path, -1, found.why);
}

void add_data_look(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "look",
      "What a file or a folder holds, and how to go on: also lagwise data PATH");
  const auto path = std::make_shared<std::string>();
  add_path(*app, *path, "A file or a folder")->required();
  app->callback([path, &verb] { look(*path, verb); });
}

const RegisterVerb data_look_registered({.name = "data look",
                                         .place = 0,
                                         .add = add_data_look});

}  // namespace
}  // namespace lagwise::cli
