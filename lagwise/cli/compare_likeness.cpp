#include "lagwise/cli/compare_likeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lagwise/cli/run_record.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::json;
using Quarters = std::array<double, 4>;

constexpr std::array kParts = {"time_pitch", "onset_duration"};

/// What a run found; null where it found nothing, or what is no such thing.
Json continuations_of(const std::string& folder) {
  Json found = read_run(folder).found("continuations");
  return found.is_object() && found.contains(kParts[0]) ? found : Json();
}

Quarters quarters(const Json& found, const char* part, const char* line) {
  return found.at(part).at(line).at("mean").get<Quarters>();
}

std::string row(const std::string& name, size_t width,
                const std::array<Quarters, 2>& parts) {
  std::string text = fmt::format("  {:<{}}", name, width);
  for (const Quarters& part : parts) {
    text += "   ";
    for (const double x : part) text += fmt::format(" {:.3f}", x);
  }
  return text;
}

/// The mean over runs of what stands on one line of each: of a control, nearly the
/// same in all.
std::array<Quarters, 2> mean_of(const std::vector<Json>& all, const char* line) {
  std::array<Quarters, 2> sum{};
  for (const Json& found : all)
    for (size_t p = 0; p < kParts.size(); ++p)
      for (size_t q = 0; q < 4; ++q)
        sum[p][q] += quarters(found, kParts[p], line)[q] / double(all.size());
  return sum;
}

}  // namespace

std::vector<std::string> likeness_lines(const std::vector<RunSummary>& runs) {
  std::vector<Json> all;
  std::vector<std::string> names;
  size_t width = std::string("another's source").size();
  for (const RunSummary& run : runs) {
    Json found = continuations_of(run.folder);
    if (found.is_null()) continue;
    all.push_back(std::move(found));
    names.push_back(run.recipe.model.encoding);
    width = std::max(width, names.back().size());
  }
  if (all.empty()) return {};
  const int64_t reached =
      all[0].value("prompt", int64_t{0}) + all[0].value("length", int64_t{0});
  std::vector<std::string> lines = {
      "",
      fmt::format(
          "likeness of style to the source, 0 to 1, of {} continuations up to {} "
          "tokens, by quarters of their time",
          all[0].value("count", int64_t{0}), reached),
      fmt::format("  {:<{}}    {:<23}    {}", "encoding", width, "time and pitch",
                  "onset and duration")};
  for (size_t i = 0; i < all.size(); ++i)
    lines.push_back(row(names[i], width,
                        {quarters(all[i], kParts[0], "written"),
                         quarters(all[i], kParts[1], "written")}));
  lines.push_back(row("the piece itself", width, mean_of(all, "truth")));
  lines.push_back(row("another's source", width, mean_of(all, "shuffled")));
  return lines;
}

}  // namespace lagwise::cli
