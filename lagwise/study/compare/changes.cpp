#include "lagwise/study/compare/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "lagwise/study/run_summary.h"
#include "lagwise/train/run_folder.h"

namespace lagwise {

std::vector<std::string> changes_of(const GridCell& cell, const CompareRequest& request,
                                    int64_t seed) {
  const std::string folder = cell.folder(request.out, seed);
  if (!std::filesystem::exists(run_file(folder, "recipe.toml"))) return {};
  const RunSummary run = read_run_summary(folder);
  const Recipe& begun = run.recipe;
  Recipe now = cell.recipe_for(request, seed);
  now.train.threads = begun.train.threads;
  std::vector<std::string> changes = forbidden_changes(begun, now);
  // More steps may follow where the schedule allows it; none can be taken back.
  if (now.train.schedule != "cosine" && now.train.steps < begun.train.steps)
    changes.push_back(
        fmt::format("train.steps = {}, was {}", now.train.steps, begun.train.steps));
  if (!run.data_hash.empty() && run.data_hash != cell.data_hash)
    changes.push_back(fmt::format("data.path = \"{}\" with hash {}, was \"{}\" with {}",
                                  cell.data_path, cell.data_hash, begun.data.path,
                                  run.data_hash));
  return changes;
}

void refuse_changes(const std::vector<GridCell>& cells, const CompareRequest& request) {
  struct Changed {
    std::string changes, first;
    int64_t more = 0;  // runs that differ in the same way
  };
  std::vector<Changed> all;
  for (const GridCell& cell : cells)
    for (int64_t seed = 0; cell.not_served.empty() && seed < request.seeds; ++seed) {
      const std::string changes =
          fmt::format("{}", fmt::join(changes_of(cell, request, seed), "; "));
      if (changes.empty()) continue;
      const auto same = std::find_if(all.begin(), all.end(), [&](const Changed& x) {
        return x.changes == changes;
      });
      if (same != all.end()) {
        ++same->more;
      } else {
        all.push_back({changes, fmt::format("{}/seed-{}", cell.name, seed)});
      }
    }
  if (all.empty()) return;
  std::string list;
  for (const Changed& one : all) {
    const std::string others =
        one.more == 0 ? "" : fmt::format(" and {} more", one.more);
    list += fmt::format("{}{}{} ({})", list.empty() ? "" : ", ", one.first, others,
                        one.changes);
  }
  throw std::invalid_argument(
      fmt::format("{} holds runs with another recipe: {}; --retrain trains them anew, "
                  "--out names another folder",
                  request.out, list));
}

}  // namespace lagwise
