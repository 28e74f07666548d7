#include "lagwise/cli/generate/fill.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/terminal/utf8.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/models/model.h"
#include "lagwise/study/card.h"
#include "lagwise/tasks/tokenizer_text.h"
#include "lagwise/train/filling.h"

namespace lagwise::cli {
namespace {

using FillJson = nlohmann::ordered_json;

/// A text with gaps in tokens: what stands between them is encoded part by part. In a
/// tokenizer of byte pairs a word's blank belongs to its token, so a blank before a gap
/// is left to what will fill it.
std::vector<int64_t> with_gaps(const std::string& text, const TokenText& reads,
                               bool blank_in_token, int64_t mask) {
  std::vector<int64_t> tokens;
  const auto add = [&](const std::string& part) {
    const std::vector<int64_t> more = reads.encode(part);
    tokens.insert(tokens.end(), more.begin(), more.end());
  };
  size_t begin = 0;
  for (size_t gap; (gap = text.find(kGap, begin)) != text.npos;) {
    std::string before = text.substr(begin, gap - begin);
    if (blank_in_token && before.ends_with(' ')) before.pop_back();
    add(before);
    tokens.push_back(mask);
    begin = gap + std::strlen(kGap);
  }
  add(text.substr(begin));
  return tokens;
}

/// On one line: a line break is a token like others.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else
      line += c;
  }
  return line;
}

/// A text with its gaps filled.
class Filled {
 public:
  Filled(const RunFlags& flags, const FillFlags& fill)
      : run_(open(flags, false)), text_(fill.text) {
    const ModelConfig& model = run_.model_config();
    if (!model_row(model.model).fills)
      throw std::invalid_argument("--fill: expected a run of the task masked, got " +
                                  run_.folder + " of the task " +
                                  run_.recipe.data.task);
    if (text_.find(kGap) == text_.npos)
      throw std::invalid_argument(
          fmt::format("--fill: expected a text with {} in it, got '{}'", kGap, text_));
    words_ = make_token_text(run_.recipe.data.task, run_.words, run_.tokenizer);
    const bool pairs =
        !run_.tokenizer.empty() && saved_tokenizer(run_.tokenizer)->kind() == "bpe";
    tokens_ = with_gaps(text_, *words_, pairs, model.vocabulary - 1);
    gaps_ = fill_gaps(*run_.model, run_.draw(), tokens_, fill.top);
    filled_ = words_->decode(tokens_);
    if (!text_.starts_with(' ') && filled_.starts_with(' ')) filled_.erase(0, 1);
  }

  void print() const { fmt::print("{}\n{}", shown_text(filled_), candidates()); }

  FillJson json() const {
    FillJson gaps = FillJson::array();
    for (const FilledGap& gap : gaps_) {
      FillJson candidates = FillJson::array();
      for (const Candidate& one : gap.candidates)
        candidates.push_back({{"token", one.token},
                              {"text", written(one)},
                              {"probability", one.probability}});
      gaps.push_back({{"position", gap.position}, {"candidates", candidates}});
    }
    return {{"run", run_.folder},          {"step", run_.step},
            {"prompt", shown_text(text_)}, {"filled", shown_text(filled_)},
            {"tokens", tokens_},           {"gaps", gaps}};
  }

  /// FOLDER/fill-NAME.json and .txt, which the page shows among what runs wrote.
  std::string write(const std::string& folder) const {
    std::filesystem::create_directories(folder);
    const std::string name =
        (std::filesystem::path(folder) / ("fill-" + card_name({0, text_, "", {}}, {})))
            .string();
    FillJson card = json();
    card["text"] = "\n" + shown_text(filled_) + "\n" + candidates();
    data::replace_file(name + ".txt", shown_text(text_) + std::string(card["text"]));
    data::replace_file(name + ".json", card.dump(2) + "\n");
    return name + ".txt";
  }

 private:
  std::string written(const Candidate& one) const {
    return shown_text(words_->decode({one.token}));
  }

  /// A line for each gap: its candidates with their probabilities.
  std::string candidates() const {
    std::string lines;
    for (size_t i = 0; i < gaps_.size(); ++i) {
      lines += fmt::format("{} {}:", kGap, i + 1);
      for (const Candidate& one : gaps_[i].candidates)
        lines +=
            fmt::format("  \"{}\" {:.3f}", on_one_line(written(one)), one.probability);
      lines += '\n';
    }
    return lines;
  }

  Run run_;
  std::string text_, filled_;
  std::unique_ptr<TokenText> words_;
  std::vector<int64_t> tokens_;
  std::vector<FilledGap> gaps_;
};

}  // namespace

void add_fill_flags(CLI::App& verb, FillFlags& flags) {
  CLI::Option* fill =
      verb.add_option("--fill", flags.text,
                      "Of a masked model: fill the gaps of this text, each written "
                      "[MASK] and one token long")
          ->type_name("TEXT");
  for (const char* other :
       {"--prompt", "--prompt-file", "--prompt-tokens", "--prompt-bars", "--length",
        "--count", "--stop", "--engine", "--state", "--save-state", "--seed",
        "--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty"})
    fill->excludes(verb.get_option(other));
  verb.add_option("--top", flags.top, "Candidates of each gap to print")
      ->check(whole_number(1, kMostCount))
      ->needs(fill)
      ->capture_default_str();
}

void run_fill(const RunFlags& run, const FillFlags& flags, const std::string& out,
              bool json) {
  const Filled filled(run, flags);
  if (json)
    fmt::print("{}\n", filled.json().dump(2));
  else
    filled.print();
  if (!out.empty()) fmt::print(stderr, "-> {}\n", filled.write(out));
}

}  // namespace lagwise::cli
