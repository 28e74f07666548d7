#include "lagwise/study/run_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "lagwise/core/errors.h"

namespace lagwise {
namespace {

namespace fs = std::filesystem;
/// Lines about training, and those about an evaluation. A step told of twice (a run
/// that was resumed) counts as told last.
void sort_metrics(RunRecord& run) {
  std::map<std::pair<int64_t, std::string>, Json> lines;
  for (const Json& line : run.files.metrics) {
    const double step = number_in(line, "step");
    if (std::isnan(step) || line.contains("done") || line.contains("diverged"))
      continue;
    lines.insert_or_assign({int64_t(step), text_in(line, "split")}, line);
  }
  for (auto& [key, line] : lines)
    (key.second.empty() ? run.training : run.evaluations).push_back(std::move(line));
}

bool is_run(const fs::path& folder) { return fs::exists(folder / "recipe.toml"); }

void collect(const fs::path& folder, int deeper, std::vector<fs::path>& found) {
  if (is_run(folder)) return found.push_back(folder);
  if (deeper == 0) return;
  std::error_code none;
  std::vector<fs::path> below;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.is_directory(none)) below.push_back(entry.path());
  std::sort(below.begin(), below.end());
  for (const fs::path& path : below) collect(path, deeper - 1, found);
}

/// The last `parts` parts of a path.
std::string tail(const fs::path& path, int parts) {
  fs::path end = path.filename(), rest = path.parent_path();
  for (int i = 1; i < parts && rest.has_filename(); ++i, rest = rest.parent_path())
    end = rest.filename() / end;
  return end.string();
}

/// Names every run by `name`; whether that tells them apart.
template <class Name>
bool told_apart(std::vector<RunRecord>& runs, const Name& name) {
  std::set<std::string> names;
  for (size_t i = 0; i < runs.size(); ++i) names.insert(runs[i].name = name(i));
  return names.size() == runs.size() && !names.contains("");
}

void name_apart(std::vector<RunRecord>& runs, const std::vector<fs::path>& paths) {
  const auto recipe = [&](size_t i) -> const Recipe& { return runs[i].summary.recipe; };
  const auto model = [&](size_t i) {
    return recipe(i).model.encoding + ", " + recipe(i).model.attention;
  };
  const bool apart =
      told_apart(runs, [&](size_t i) { return tail(paths[i], 1); }) ||
      told_apart(runs, [&](size_t i) { return recipe(i).title; }) ||
      told_apart(runs, [&](size_t i) { return recipe(i).model.encoding; }) ||
      told_apart(runs, model) || told_apart(runs, [&](size_t i) {
        return model(i) + ", seed " + std::to_string(recipe(i).train.seed);
      });
  for (int parts = 2; !apart && parts <= 4; ++parts)
    if (told_apart(runs, [&](size_t i) { return tail(paths[i], parts); })) return;
}

}  // namespace

const Json& RunRecord::found(const std::string& kind) const {
  static const Json nothing;
  for (const char* split : {"-test", "-valid", "-train"})
    if (const auto at = files.eval.find(kind + split); at != files.eval.end())
      return at->second;
  return nothing;
}

RunRecord read_run(const std::string& folder) {
  RunRecord run;
  run.name = tail(fs::path(folder), 1);
  run.files = read_run_files(folder);
  run.summary = summary_of(run.files);
  sort_metrics(run);
  return run;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& folders) {
  std::vector<std::string> left_out;
  return read_runs(folders, left_out);
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& folders,
                                 std::vector<std::string>& left_out) {
  constexpr int kDeepest = 3;
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    const size_t before = found.size();
    std::error_code none;
    const fs::path path = fs::weakly_canonical(folder, none);
    collect(path.empty() ? fs::path(folder) : path, kDeepest, found);
    if (found.size() == before)
      throw DataError(folder, -1,
                      "a run's folder (with a recipe.toml), or runs below it");
  }
  std::set<fs::path> seen;
  std::erase_if(found, [&](const fs::path& path) { return !seen.insert(path).second; });
  std::vector<RunRecord> runs;
  std::vector<fs::path> paths;  // of runs
  for (const fs::path& path : found) {
    try {
      runs.push_back(read_run(path.string()));
      paths.push_back(path);
    } catch (const std::exception& reason) {  // a recipe that is none
      if (found.size() == 1) throw;
      left_out.emplace_back(reason.what());
    }
  }
  if (runs.empty()) throw DataError(folders[0], -1, "a run; " + left_out[0]);
  name_apart(runs, paths);
  return runs;
}

}  // namespace lagwise
