#include "lagwise/cli/verbs.h"

#include <algorithm>

#include "lagwise/core/registry.h"

namespace lagwise::cli {
namespace {

Registry<VerbRow>& verb_registry() {
  static Registry<VerbRow> registry("verb");
  return registry;
}

/// "data" of "data listops"; nothing of "data".
std::string_view parent_of(std::string_view name) {
  return name.substr(0, name.rfind(' ') == name.npos ? 0 : name.rfind(' '));
}

std::vector<AddVerb> verbs_below(std::string_view parent) {
  std::vector<VerbRow> rows;
  for (const VerbRow& row : verb_registry().rows())
    if (parent_of(row.name) == parent) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const VerbRow& a, const VerbRow& b) {
    return a.place < b.place;
  });
  std::vector<AddVerb> all;
  for (const VerbRow& row : rows) all.push_back(row.add);
  return all;
}

}  // namespace

RegisterVerb::RegisterVerb(VerbRow row) { verb_registry().add(row); }

std::vector<AddVerb> verbs() { return verbs_below(""); }

void add_verbs_of(CLI::App& verb) {
  for (const AddVerb add : verbs_below(verb.get_name())) add(verb);
}

AddVerb verb(std::string_view name) { return verb_registry().find(name).add; }

}  // namespace lagwise::cli
