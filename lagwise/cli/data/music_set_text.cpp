#include "lagwise/cli/data/music_set_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "lagwise/data/formats/fnv1a.h"

namespace lagwise::cli {
namespace {

constexpr size_t kNamed = 20;

std::string names_text(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = fmt::format("{} {}\n", names.size(), what);
  for (size_t i = 0; i < std::min(names.size(), kNamed); ++i)
    text += "  " + names[i] + "\n";
  if (names.size() > kNamed)
    text += fmt::format("  and {} more\n", names.size() - kNamed);
  return text;
}

std::string loss_text(const data::TokenLoss& loss) {
  std::string text = fmt::format(
      "{} of {} notes kept ({:.2f} %), on average moved by {:.4f} beats, their length "
      "changed by {:.4f} beats, their velocity by {:.2f}\n",
      loss.kept, loss.notes,
      100.0 * static_cast<double>(loss.kept) /
          static_cast<double>(std::max<int64_t>(loss.notes, 1)),
      loss.onset_error, loss.duration_error, loss.velocity_error);
  for (const auto& [what, count] : loss.changed)
    text += fmt::format("  {:>9}  {}\n", count, what);
  return text;
}

}  // namespace

std::string report_text(const data::MidiReport& report) {
  std::string text = fmt::format("{} of {} files read\n", report.read, report.files);
  text += names_text("damaged and skipped:", report.damaged);
  text += names_text("without a note the tokens can say, skipped:", report.silent);
  text += loss_text(report.loss);
  const data::SmfRepairs& repairs = report.repairs;
  if (repairs.unpaired_ons + repairs.unpaired_offs + repairs.empty_notes > 0)
    text += fmt::format(
        "dropped: {} notes without an end, {} ends without a note, {} notes without "
        "length\n",
        repairs.unpaired_ons, repairs.unpaired_offs, repairs.empty_notes);
  return text;
}

std::string corpus_text(const std::string& folder, const data::MusicCorpus& corpus) {
  const auto scheme = data::make_token_scheme(corpus.scheme);
  std::string text = fmt::format("{}: {} tokens, a vocabulary of {} (hash {})\n",
                                 folder, corpus.scheme, scheme->vocabulary().size(),
                                 data::hash_text(scheme->vocabulary().hash()));
  for (const auto& [split, pieces] : corpus.splits) {
    std::vector<size_t> lengths;
    for (const auto& piece : pieces) lengths.push_back(piece.size());
    std::ranges::sort(lengths);
    text +=
        fmt::format("  {:<6} {:>6} pieces {:>10} tokens; a piece {} to {}, median {}\n",
                    split, pieces.size(), corpus.tokens(split), lengths.front(),
                    lengths.back(), lengths[lengths.size() / 2]);
  }
  if (!corpus.splits.contains("valid"))
    text += "  one piece alone leaves none to judge by: add another\n";
  return text;
}

}  // namespace lagwise::cli
