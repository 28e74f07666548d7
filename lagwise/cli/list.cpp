// `lagwise list [WORD]`: what a recipe can name, with a summary and the options of each.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lagwise/attention/feature_map.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/nearest.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/models/model.h"
#include "lagwise/nn/attention_presets.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/tasks/task.h"

namespace lagwise::cli {
namespace {

constexpr size_t kColumns = 100, kNames = 18;  // of a line; before the summaries

struct Listed {
  std::string name, summary;
  std::vector<Spec::Option> options = {};
  std::string stands_for = {};  ///< of a preset: the text in full
};

std::vector<Listed> list_attentions() {
  std::vector<Listed> all;
  for (const nn::MixerRow& row : nn::mixers())
    all.push_back({std::string(row.name), std::string(row.summary), row.options()});
  for (const nn::AttentionPreset& preset : nn::attention_presets())
    all.push_back({std::string(preset.name),
                   fmt::format("{}; {}", preset.paper, preset.note),
                   {},
                   "= " + std::string(preset.text)});
  return all;
}

std::vector<Listed> list_encodings() {
  std::vector<Listed> all;
  for (const EncodingRow& row : encodings())
    all.push_back(
        {std::string(row.name), std::string(row.summary), encoding_options(row)});
  return all;
}

std::vector<Listed> list_maps() {
  std::vector<Listed> all;
  for (const FeatureMapRow& row : feature_maps())
    all.push_back(
        {std::string(row.name), std::string(row.summary), feature_map_options(row)});
  return all;
}

std::vector<Listed> list_models() {
  std::vector<Listed> all;
  for (const ModelRow& row : models())
    all.push_back({std::string(row.name), std::string(row.summary)});
  return all;
}

std::vector<Listed> list_tasks() {
  std::vector<Listed> all;
  for (const TaskRow& row : tasks())
    all.push_back({std::string(row.name), std::string(row.summary), task_options(row)});
  return all;
}

struct Kind {
  const char* word;
  const char* heading;  ///< what they are, and where a recipe names one
  std::vector<Listed> (*all)();
};

constexpr std::array kKinds = {
    Kind{"attentions", "Attentions: model.attention = \"NAME:key=value,...\"",
         list_attentions},
    Kind{"encodings", "Positional encodings: model.encoding = \"NAME:key=value,...\"",
         list_encodings},
    Kind{"maps", "Feature maps of linear attention: \"linear:map=NAME:key=value;...\"",
         list_maps},
    Kind{"models", "Models: the task chooses one; its keys: lagwise train --keys",
         list_models},
    Kind{"tasks", "Tasks: data.task = \"NAME:key=value,...\"", list_tasks},
};

/// "norms=chi|sqrt_d", the default first; "layout=<half|interleaved>" without one.
std::string option_text(const Spec::Option& option) {
  constexpr std::string_view kChoice = "one of ";
  if (!option.expected.starts_with(kChoice)) return option.key + "=" + option.fallback;
  std::string legal = option.fallback, rest = option.expected.substr(kChoice.size());
  while (!rest.empty()) {
    const size_t end = rest.find(", ");
    const std::string word = rest.substr(0, end);
    if (word != option.fallback) legal += (legal.empty() ? "" : "|") + word;
    rest = end == std::string::npos ? "" : rest.substr(end + 2);
  }
  return option.key + "=" + (option.fallback.empty() ? "<" + legal + ">" : legal);
}

/// Words filled into lines that begin at column kNames and end before kColumns.
void print_wrapped(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty() && kNames + line.size() + 1 + word.size() > kColumns) {
      fmt::print("{:{}}{}\n", "", kNames, line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) fmt::print("{:{}}{}\n", "", kNames, line);
}

void print(const Kind& kind) {
  fmt::print("{}\n", kind.heading);
  for (const Listed& one : kind.all()) {
    fmt::print("  {:<{}}{}{}\n", one.name, kNames - 2,
               one.name.size() + 2 < kNames ? "" : " ", one.summary);
    if (!one.stands_for.empty()) fmt::print("    {}\n", one.stands_for);
    std::vector<std::string> options;
    for (const Spec::Option& option : one.options)
      options.push_back(option_text(option));
    print_wrapped(options);
  }
}

[[noreturn]] void refuse(const std::string& word) {
  std::vector<std::string> words;
  for (const Kind& kind : kKinds) words.emplace_back(kind.word);
  const std::string meant = did_you_mean(word, words);
  throw std::invalid_argument(fmt::format("list: unknown '{}'{} expected one of {}",
                                          word, meant.empty() ? ";" : meant,
                                          fmt::join(words, ", ")));
}

void list_kinds(const std::string& word) {
  bool found = false;
  for (const Kind& kind : kKinds) {
    if (!word.empty() && word != kind.word) continue;
    if (found) fmt::print("\n");
    print(kind);
    found = true;
  }
  if (!found) refuse(word);
  fmt::print(
      "\nBelow a name stand its options with their defaults; a|b: what is legal, the "
      "default first;\n<a|b>: one must be given; = TEXT: what a name alone stands "
      "for.\n");
}

void add_list(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "list", "List encodings, attentions, feature maps, models or tasks");
  const auto word = std::make_shared<std::string>();
  verb->add_option("what", *word,
                   "attentions, encodings, maps, models or tasks; all unless given");
  verb->callback([word] { list_kinds(*word); });
}

const RegisterVerb list_registered({.name = "list", .place = 8, .add = add_list});

}  // namespace
}  // namespace lagwise::cli
