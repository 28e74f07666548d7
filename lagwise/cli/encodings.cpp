// `lagwise encodings`: what positional encodings there are, and what each can do.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lagwise/cli/encodings/show.h"
#include "lagwise/cli/encodings/table.h"
#include "lagwise/cli/verbs.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

Json options_json(const EncodingFacts& facts) {
  Json options = Json::array();
  for (const Spec::Option& option : facts.options)
    options.push_back({{"key", option.key},
                       {"default", option.fallback},
                       {"expected", option.expected}});
  return options;
}

void print_json(const std::vector<EncodingFacts>& all) {
  Json array = Json::array();
  for (const EncodingFacts& facts : all)
    array.push_back({{"name", facts.name},
                     {"summary", facts.summary},
                     {"paper", facts.paper},
                     {"example", facts.example},
                     {"options", options_json(facts)},
                     {"exact", facts.traits.exact},
                     {"linear_causal", facts.traits.linear_causal},
                     {"linear_full", facts.traits.linear_full},
                     {"stage", stage_name(facts.traits)},
                     {"denominator", denominator_name(facts.traits)},
                     {"dims", facts.axes},
                     {"stochastic", facts.traits.stochastic},
                     {"relative", facts.traits.relative},
                     {"longest", facts.traits.longest}});
  fmt::print("{}\n", array.dump(2));
}

void print_table(const std::vector<EncodingFacts>& all) {
  const auto yes = [](bool x) { return x ? "yes" : "-"; };
  size_t width = 0;
  for (const EncodingFacts& f : all) width = std::max(width, f.name.size());
  fmt::print("{:<{}} {:<5} {:<6} {:<5} {:<10} {:<11} {:<4} {:<6} {:<9} what\n", "name",
             width, "exact", "causal", "full", "stage", "denominator", "axes", "draws",
             "longest");
  for (const EncodingFacts& f : all)
    fmt::print("{:<{}} {:<5} {:<6} {:<5} {:<10} {:<11} {:<4} {:<6} {:<9} {}\n", f.name,
               width, yes(f.traits.exact), yes(f.traits.linear_causal),
               yes(f.traits.linear_full), stage_name(f.traits),
               denominator_name(f.traits), f.axes, yes(f.traits.stochastic),
               f.traits.longest, f.summary);
  fmt::print(
      "\nexact: serves exact attention; causal, full: linear attention. stage: where "
      "in "
      "linear attention\nit acts, before or after the feature map. Options: lagwise "
      "encodings --markdown; pictures: lagwise encodings show NAME\n");
}

struct EncodingsFlags {
  bool json = false, markdown = false;
};

void show_table(const EncodingsFlags& flags) {
  const std::vector<EncodingFacts> all = encoding_facts();
  if (flags.markdown) {
    fmt::print("{}", encodings_markdown(all));
  } else if (flags.json) {
    print_json(all);
  } else {
    print_table(all);
  }
}

void add_encodings(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("encodings", "List the positional encodings, or show one");
  const auto flags = std::make_shared<EncodingsFlags>();
  CLI::Option* json =
      verb->add_flag("--json", flags->json, "Print a JSON array instead of a table");
  verb->add_flag("--markdown", flags->markdown, "Print lagwise/encodings/README.md")
      ->excludes(json);
  add_encodings_show(*verb);
  verb->callback([flags, verb] {
    if (verb->get_subcommands().empty()) show_table(*flags);
  });
}

const RegisterVerb encodings_registered({.name = "encodings",
                                         .place = 7,
                                         .add = add_encodings});

}  // namespace
}  // namespace lagwise::cli
