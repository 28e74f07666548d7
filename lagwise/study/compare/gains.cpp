// Whether a model uses a longer past than its training length: what is claimed, and
// against what.

#include <fmt/format.h>

#include <cmath>

#include "lagwise/study/compare/table.h"
#include "lagwise/train/confidence.h"
#include "lagwise/train/past.h"

namespace lagwise {
namespace {

using Length = CompareRow::Length;

bool has_past(const CompareRow& row) { return PastMultiples(row.past).any(); }

const Length* same_length(const CompareRow& row, int64_t tokens) {
  for (const Length& length : row.lengths)
    if (length.tokens == tokens) return &length;
  return nullptr;
}

/// The twin's figures at that length; of several twins those with the lowest restart
/// line. Null: no row is its twin, or none is judged.
const Length* twin_at(const CompareRow& row, const std::vector<CompareRow>& rows,
                      int64_t tokens) {
  const Length* lowest = nullptr;
  if (!has_past(row) || row.twin_key.empty()) return nullptr;
  for (const CompareRow& other : rows) {
    if (has_past(other) || other.twin_key != row.twin_key) continue;
    const Length* found = same_length(other, tokens);
    if (found && found->restart.count > 0 &&
        (!lowest || found->restart.mean < lowest->restart.mean))
      lowest = found;
  }
  return lowest;
}

/// Loss less that line, one number for each seed that has both.
std::vector<double> gains_of(const Length& own, const Length& line) {
  std::vector<double> gains;
  for (const auto& [seed, at] : own.seeds) {
    const auto found = line.seeds.find(seed);
    if (found != line.seeds.end() && std::isfinite(at.loss - found->second.restart))
      gains.push_back(at.loss - found->second.restart);
  }
  return gains;
}

std::string gain_text(const std::vector<double>& gains) {
  if (gains.size() < 2)
    return fmt::format("{:+.3f} nats; one seed claims nothing",
                       gains.empty() ? kUnknown : gains[0]);
  const std::vector<double> ones(gains.size(), 1);
  const Interval mean = mean_of_windows(gains, ones);
  const int sign = sure_sign(mean);
  const char* verdict = sign < 0   ? "a longer past is used"
                        : sign > 0 ? "a longer past harms"
                                   : "no gain is shown";
  return fmt::format("{:+.3f} ± {:.3f} nats (95 %, {} seeds): {}", mean.mean,
                     mean.error, gains.size(), verdict);
}

std::string row_name(const CompareRow& row) {
  return row.encoding + ", " + row.attention +
         (has_past(row) ? ", past " + row.past : "");
}

}  // namespace

void set_twins(std::vector<CompareRow>& rows) {
  for (CompareRow& row : rows)
    for (Length& length : row.lengths)
      if (const Length* twin = twin_at(row, rows, length.tokens))
        length.twin = twin->restart;
}

std::vector<std::string> gain_lines(const std::vector<CompareRow>& rows) {
  std::vector<std::string> lines;
  for (const CompareRow& row : rows) {
    if (row.lengths.empty() || row.lengths.back().tokens <= row.trained) continue;
    const Length& own = row.lengths.back();
    if (own.loss.count == 0 || own.restart.count == 0) continue;
    const Length* twin = twin_at(row, rows, own.tokens);
    const bool against_twin = twin && twin->restart.mean < own.restart.mean;
    std::string text =
        fmt::format("{} at {:.4g}x against {}: ", row_name(row),
                    double(own.tokens) / double(row.trained),
                    against_twin ? "its twin's restart line" : "its restart line");
    if (has_past(row) && !twin)
      text += "no twin with train.past = 0 is here: no gain is claimed";
    else
      text += gain_text(gains_of(own, against_twin ? *twin : own));
    lines.push_back(text);
  }
  return lines;
}

}  // namespace lagwise
