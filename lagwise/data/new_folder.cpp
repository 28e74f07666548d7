#include "lagwise/data/new_folder.h"

#include <filesystem>
#include <stdexcept>

#include "lagwise/data/shards.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

void check(const std::error_code& failed, const std::string& folder) {
  if (failed)
    throw std::runtime_error("cannot make folder " + folder + ": " + failed.message());
}

}  // namespace

NewFolder::NewFolder(std::string folder) : folder_(std::move(folder)) {
  while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  std::error_code failed;
  const auto there = fs::status(folder_, failed);
  const bool ours = fs::is_directory(there) &&
                    (fs::is_empty(folder_, failed) || is_shard_set(folder_));
  if (fs::exists(there) && !ours)
    throw std::invalid_argument(
        "expected a new or empty folder, or an earlier set, got " + folder_);
  temporary_ = folder_ + ".tmp";
  fs::remove_all(temporary_, failed);
  fs::create_directories(temporary_, failed);
  check(failed, folder_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::commit() {
  std::error_code failed;
  fs::remove_all(folder_, failed);
  if (!failed) fs::rename(temporary_, folder_, failed);
  check(failed, folder_);
  temporary_.clear();
}

}  // namespace lagwise::data
