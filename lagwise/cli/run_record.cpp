#include "lagwise/cli/run_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "lagwise/core/errors.h"

namespace lagwise::cli {
namespace {

namespace fs = std::filesystem;
using Json = RunRecord::Json;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Json json_of(const std::string& text) { return Json::parse(text, nullptr, false); }

/// Keys and values of a recipe as text, "table.key" -> "value". A run's recipe is
/// written by lagwise, one key a line.
std::map<std::string, std::string> recipe_words(const std::string& text) {
  std::map<std::string, std::string> words;
  std::istringstream lines(text);
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find(" = ");
    if (line.starts_with("[") && line.ends_with("]")) {
      table = line.substr(1, line.size() - 2) + ".";
    } else if (equals != std::string::npos) {
      std::string value = line.substr(equals + 3);
      if (value.size() > 1 && value[0] == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
      words[table + line.substr(0, equals)] = value;
    }
  }
  return words;
}

/// A step told of twice (a run that was resumed) counts as told last.
void read_metrics(const fs::path& file, RunRecord& run) {
  std::map<std::pair<int64_t, std::string>, Json> lines;
  std::istringstream in(text_of(file));
  for (std::string text; std::getline(in, text);) {
    Json line = json_of(text);
    if (!line.is_object() || !line.contains("step") ||
        !line["step"].is_number_integer())
      continue;  // half a line: the run is being written, or was killed
    const std::string split = line.value("split", Json("")).is_string()
                                  ? line.value("split", "")
                                  : std::string();
    const bool end = line.contains("done");
    lines[{line["step"].get<int64_t>(), end ? "end" : split}] = std::move(line);
  }
  for (auto& [key, line] : lines) {
    if (key.second == "end") {
      run.end = line;
    } else {
      (key.second.empty() ? run.training : run.evaluations).push_back(line);
    }
  }
  if (!run.end.is_null() && run.step() > run.end["step"].get<int64_t>())
    run.end = nullptr;  // resumed with more steps
}

void read_folder_of_json(const fs::path& folder, std::map<std::string, Json>& into,
                         std::vector<std::string>& unread) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() != ".json") continue;
    Json json = json_of(text_of(entry.path()));
    if (json.is_object()) {
      into[entry.path().stem().string()] = std::move(json);
    } else {
      unread.push_back(entry.path().string());
    }
  }
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

void name_apart(std::vector<RunRecord>& runs, const std::vector<fs::path>& paths) {
  for (int parts = 1; parts <= 4; ++parts) {
    std::set<std::string> names;
    for (size_t i = 0; i < runs.size(); ++i)
      names.insert(runs[i].name = tail(paths[i], parts));
    if (names.size() == runs.size()) return;
  }
}

}  // namespace

double number_in(const Json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number())
    return NAN;
  return object[key].get<double>();
}

std::string RunRecord::word(const std::string& key,
                            const std::string& otherwise) const {
  const auto at = recipe.find(key);
  return at == recipe.end() ? otherwise : at->second;
}

int64_t RunRecord::whole(const std::string& key) const {
  return std::atoll(word(key, "0").c_str());
}

const Json& RunRecord::found(const std::string& kind) const {
  static const Json nothing;
  for (const char* split : {"-test", "-valid", "-train"})
    if (const auto at = eval.find(kind + split); at != eval.end()) return at->second;
  return nothing;
}

int64_t RunRecord::step() const {
  int64_t last = 0;
  for (const auto* lines : {&training, &evaluations})
    if (!lines->empty()) last = std::max(last, lines->back()["step"].get<int64_t>());
  return last;
}

int64_t RunRecord::steps() const { return whole("train.steps"); }

RunRecord read_run(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  run.name = tail(fs::path(folder), 1);
  run.recipe = recipe_words(text_of(fs::path(folder) / "recipe.toml"));
  run.facts = json_of(text_of(fs::path(folder) / "run.json"));
  if (!run.facts.is_object()) run.facts = nullptr;
  read_metrics(fs::path(folder) / "metrics.jsonl", run);
  read_folder_of_json(fs::path(folder) / "eval", run.eval, run.unread);
  read_folder_of_json(fs::path(folder) / "samples", run.cards, run.unread);
  return run;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& folders) {
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
  for (const fs::path& path : found) runs.push_back(read_run(path.string()));
  name_apart(runs, found);
  return runs;
}

}  // namespace lagwise::cli
