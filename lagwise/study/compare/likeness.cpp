#include "lagwise/study/compare/likeness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lagwise/study/run_record.h"

namespace lagwise {
namespace {

using Quarters = std::array<double, 4>;

struct Part {
  const char *key, *title;
};
constexpr std::array kParts = {Part{"time_pitch", "time and pitch"},
                               Part{"onset_duration", "onset and duration"},
                               Part{"onset_drum", "drums"}};
using Likeness = std::array<Quarters, kParts.size()>;

/// One line of what a run found: written, truth or shuffled. NaN: nothing to compare.
Likeness likeness_in(const Json& found, const char* line) {
  Likeness all;
  for (size_t p = 0; p < kParts.size(); ++p) {
    const Json& means = found.at(kParts[p].key).at(line).at("mean");
    for (size_t q = 0; q < 4; ++q)
      all[p][q] = means.at(q).is_number() ? means.at(q).get<double>()
                                          : std::numeric_limits<double>::quiet_NaN();
  }
  return all;
}

/// The mean over runs of what stands on one line of each: of a control, nearly the
/// same in all.
Likeness mean_of(const std::vector<Json>& all, const char* line) {
  Likeness sum{}, count{};
  for (const Json& found : all) {
    const Likeness one = likeness_in(found, line);
    for (size_t p = 0; p < kParts.size(); ++p)
      for (size_t q = 0; q < 4; ++q)
        if (!std::isnan(one[p][q])) sum[p][q] += one[p][q], ++count[p][q];
  }
  for (size_t p = 0; p < kParts.size(); ++p)
    for (size_t q = 0; q < 4; ++q) sum[p][q] /= count[p][q];  // 0 / 0: NaN
  return sum;
}

/// Which parts any of these lines says something about: piano music has no drums.
std::array<bool, kParts.size()> parts_of(const std::vector<Likeness>& lines) {
  std::array<bool, kParts.size()> there{};
  for (const Likeness& line : lines)
    for (size_t p = 0; p < kParts.size(); ++p)
      there[p] |= std::ranges::any_of(line[p], [](double x) { return !std::isnan(x); });
  return there;
}

/// The table: a name a line, the quarters of each part beside it.
std::vector<std::string> table(const std::vector<std::string>& names,
                               const std::vector<Likeness>& lines) {
  const auto there = parts_of(lines);
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::vector<std::string> out = {fmt::format("  {:<{}}", "encoding", width)};
  for (size_t p = 0; p < kParts.size(); ++p)
    if (there[p]) out[0] += fmt::format("    {:<23}", kParts[p].title);
  out[0].erase(out[0].find_last_not_of(' ') + 1);
  for (size_t i = 0; i < lines.size(); ++i) {
    out.push_back(fmt::format("  {:<{}}", names[i], width));
    for (size_t p = 0; p < kParts.size(); ++p) {
      if (!there[p]) continue;
      out.back() += "   ";
      for (const double x : lines[i][p])
        out.back() +=
            std::isnan(x) ? fmt::format(" {:>5}", "-") : fmt::format(" {:.3f}", x);
    }
  }
  return out;
}

}  // namespace

bool judged_with_drums_among(const Json& found) {
  return found.is_object() && found.contains("time_pitch") &&
         !found.contains("onset_drum");
}

std::vector<std::string> likeness_lines(const std::vector<RunSummary>& runs) {
  std::vector<Json> all;
  std::vector<std::string> names, older;
  for (const RunSummary& run : runs) {
    Json found = read_run(run.folder).found("continuations");
    if (!found.is_object() || !found.contains(kParts[0].key)) continue;
    if (judged_with_drums_among(found)) {
      older.push_back(run.recipe.model.encoding);
    } else {
      all.push_back(std::move(found));
      names.push_back(run.recipe.model.encoding);
    }
  }
  std::vector<std::string> lines;
  if (!all.empty()) {
    const int64_t reached =
        all[0].value("prompt", int64_t{0}) + all[0].value("length", int64_t{0});
    lines = {"", fmt::format("likeness of style to the source, 0 to 1, of {} "
                             "continuations up to {} tokens, by quarters of their time",
                             all[0].value("count", int64_t{0}), reached)};
    std::vector<Likeness> rows;
    for (const Json& found : all) rows.push_back(likeness_in(found, "written"));
    names.insert(names.end(), {"the piece itself", "another's source"});
    rows.insert(rows.end(), {mean_of(all, "truth"), mean_of(all, "shuffled")});
    for (std::string& line : table(names, rows)) lines.push_back(std::move(line));
  }
  if (!older.empty())
    lines.push_back(fmt::format(
        "likeness of {} left out: found by an earlier version, with drums averaged in; "
        "lagwise eval RUN --continuations N finds it anew",
        fmt::join(older, ", ")));
  return lines;
}

}  // namespace lagwise
