// What runs wrote, for `lagwise report`: text, side by side for one prompt.

#include <fmt/format.h>

#include <map>

#include "lagwise/study/report/page.h"
#include "lagwise/study/run_files.h"

namespace lagwise {
namespace {

std::string settings_of(const Json& card) {
  std::string note;
  for (const char* key : {"seed", "temperature", "top_p", "top_k"})
    if (card.contains(key) && card[key].is_number())
      note += fmt::format("{}{} {}", note.empty() ? "" : ", ", key, card[key].dump());
  return note;
}

}  // namespace

report::Section samples_section(const std::vector<RunRecord>& runs) {
  std::map<std::string, report::Samples> by_name;  // one card of the page a prompt
  for (const RunRecord& run : runs) {
    for (const auto& [name, card] : run.files.cards) {
      const std::string text = text_in(card, "text");
      if (text.empty() || card.contains("music")) continue;
      auto& samples = by_name[name];
      samples.title = name;
      samples.samples.push_back(
          {run.name, text_in(card, "prompt"), text, settings_of(card)});
    }
  }
  report::Section section{"What they wrote", "Prompts are shaded.", {}};
  for (auto& [name, samples] : by_name) section.blocks.push_back(std::move(samples));
  return section;
}

}  // namespace lagwise
