#include "lagwise/study/run_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace lagwise {
namespace {

namespace fs = std::filesystem;

/// The object in a file; null where there is no file, or where it holds no object:
/// then it is damaged.
Json object_in(const fs::path& file, std::vector<std::string>& damaged) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return nullptr;
  Json json = Json::parse(in, nullptr, false);
  if (json.is_object()) return json;
  damaged.push_back(file.string());
  return nullptr;
}

std::map<std::string, Json> objects_below(const fs::path& folder,
                                          std::vector<std::string>& damaged) {
  std::map<std::string, Json> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() != ".json") continue;
    Json json = object_in(entry.path(), damaged);
    if (json.is_object()) files[entry.path().stem().string()] = std::move(json);
  }
  return files;
}

std::vector<Json> whole_lines(const fs::path& file) {
  std::vector<Json> lines;
  std::ifstream in(file, std::ios::binary);
  for (std::string text; std::getline(in, text);) {
    Json line = Json::parse(text, nullptr, false);
    if (line.is_object()) lines.push_back(std::move(line));
  }
  return lines;
}

/// The value of a key, or null.
const Json& value_in(const Json& object, const std::string& key) {
  static const Json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : nothing;
}

}  // namespace

RunFiles read_run_files(const std::string& folder) {
  RunFiles files;
  files.folder = folder;
  files.facts = object_in(fs::path(folder) / "run.json", files.damaged);
  files.metrics = whole_lines(fs::path(folder) / "metrics.jsonl");
  files.eval = objects_below(fs::path(folder) / "eval", files.damaged);
  files.cards = objects_below(fs::path(folder) / "samples", files.damaged);
  std::sort(files.damaged.begin(), files.damaged.end());
  return files;
}

double number_in(const Json& object, const std::string& key) {
  const Json& value = value_in(object, key);
  return value.is_number() ? value.get<double>() : NAN;
}

int64_t whole_in(const Json& object, const std::string& key) {
  const Json& value = value_in(object, key);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

std::string text_in(const Json& object, const std::string& key) {
  const Json& value = value_in(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace lagwise
