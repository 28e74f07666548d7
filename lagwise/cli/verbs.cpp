#include "lagwise/cli/verbs.h"

#include <algorithm>

#include "lagwise/core/registry.h"

namespace lagwise::cli {
namespace {

Registry<VerbRow>& verb_registry() {
  static Registry<VerbRow> registry("verb");
  return registry;
}

}  // namespace

RegisterVerb::RegisterVerb(VerbRow row) { verb_registry().add(row); }

std::vector<AddVerb> verbs() {
  std::vector<VerbRow> rows = verb_registry().rows();
  std::stable_sort(rows.begin(), rows.end(), [](const VerbRow& a, const VerbRow& b) {
    return a.place < b.place;
  });
  std::vector<AddVerb> all;
  for (const VerbRow& row : rows) all.push_back(row.add);
  return all;
}

AddVerb verb(std::string_view name) { return verb_registry().find(name).add; }

}  // namespace lagwise::cli
