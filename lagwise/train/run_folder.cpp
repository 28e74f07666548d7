#include "lagwise/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "lagwise/train/recipe_fields.h"

namespace lagwise {
namespace fs = std::filesystem;
namespace {

/// One who looks whether a folder is locked holds its lock for a moment.
bool locks_soon(int file) {
  constexpr int kTries = 5;
  constexpr useconds_t kMoment = 10'000;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) usleep(kMoment);
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  }
  return false;
}

}  // namespace

RunFolder::RunFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw std::runtime_error("cannot make the folder " + path + ": " + error.message());
  const std::string file = run_file(path, "lock");
  lock_ = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0)
    throw std::runtime_error("cannot write " + file + ": " + std::strerror(errno));
  if (!locks_soon(lock_)) {
    close(lock_);
    throw std::runtime_error("another process is training in " + path);
  }
}

RunFolder::~RunFolder() { close(lock_); }

bool is_being_trained(const std::string& path) {
  const int lock = open(run_file(path, "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool held = flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(lock);
  return held;
}

std::string default_run_folder(const std::string& recipe) {
  return (fs::path("runs") / fs::path(recipe).stem()).string();
}

std::string run_file(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

void forget_run(const std::string& folder) {
  for (const char* name : {"checkpoints", "metrics.jsonl", "eval", "samples",
                           "run.json", "recipe.toml"})  // the recipe last: it makes the
    fs::remove_all(fs::path(folder) / name);            // folder a run
}

std::vector<std::string> forbidden_changes(const Recipe& begun, const Recipe& now) {
  std::vector<std::string> free = {"title", "data.path", "train.eval_every",
                                   "train.checkpoint_every", "train.log_every"};
  if (now.train.schedule != "cosine") free.emplace_back("train.steps");
  if (now.train.threads == 0) free.emplace_back("train.threads");
  // Sums over the columns of a row are another order of the same sum.
  free.emplace_back("train.sequence_ranks");
  std::vector<std::string> changes;
  for (const RecipeField& field : recipe_fields()) {
    if (std::find(free.begin(), free.end(), field.key) != free.end()) continue;
    if (field.kept(begun) == field.kept(now)) continue;
    changes.push_back(std::string(field.key) + " = " + toml_value(field.get(now)) +
                      ", was " + toml_value(field.get(begun)));
  }
  return changes;
}

ModelConfig completed_model(const Recipe& recipe, const Task& task) {
  ModelConfig config = recipe.model;
  config.length = recipe.data.length;
  config.seed = recipe.train.seed;
  task.shape(config);
  return config;
}

}  // namespace lagwise
