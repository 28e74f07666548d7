#pragma once

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "lagwise/cli/program.h"

namespace lagwise::cli {

/// A verb is one file: a function that adds a subcommand to the program and, as its
/// callback, what the subcommand does; and a row that registers it. The callback prints
/// its result on stdout and throws when it fails: program.h says what becomes of that.
struct VerbRow {
  std::string_view name;  ///< "train"; a verb below another has both: "data listops"
  int place;  ///< in the help: the verbs stand in the order in which one needs them
  AddVerb add;
};

/// Adds a row. Define one per file, at namespace scope.
struct RegisterVerb {
  explicit RegisterVerb(VerbRow row);
};

/// All that stand below no other, by place.
std::vector<AddVerb> verbs();

/// Adds the verbs below this one, by place.
void add_verbs_of(CLI::App& verb);

/// One of them; std::invalid_argument lists the names.
AddVerb verb(std::string_view name);

}  // namespace lagwise::cli
