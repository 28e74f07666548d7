#include "lagwise/data/sets/new_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "lagwise/data/sets/shards.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

void check(const std::error_code& failed, const std::string& folder) {
  if (failed)
    throw std::runtime_error("cannot make folder " + folder + ": " + failed.message());
}

/// Whether an open file is still what its name stands for.
bool is_file(int descriptor, const std::string& name) {
  struct stat opened, named;
  return fstat(descriptor, &opened) == 0 && stat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// Puts `from` in the place of `to`, and what was there in that of `from`.
std::error_code change_places(const std::string& from, const std::string& to) {
  std::error_code failed;
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0)
    return failed;
  if (errno != ENOENT) fs::remove_all(to, failed);  // not every file system can
  if (!failed) fs::rename(from, to, failed);
  return failed;
}

}  // namespace

/// Of one writer on a name. It goes with the process, however that ends; only then is
/// the file left. Whoever gives the lock up removes its file first: one that was opened
/// before that, and locked after it, is no lock.
struct NewFolder::Lock {
  explicit Lock(const std::string& folder) : name(folder + ".lock") {
    do {
      if (descriptor >= 0) close(descriptor);
      descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
      if (descriptor < 0)
        throw std::runtime_error("cannot write " + name + ": " + std::strerror(errno));
      if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        close(descriptor);
        throw std::runtime_error("another process is writing " + folder);
      }
    } while (!is_file(descriptor, name));
  }
  ~Lock() {
    unlink(name.c_str());
    close(descriptor);
  }
  Lock(const Lock&) = delete;

  std::string name;
  int descriptor = -1;
};

NewFolder::NewFolder(std::string folder) : folder_(std::move(folder)) {
  while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  std::error_code failed;
  const auto there = fs::status(folder_, failed);
  const bool ours = fs::is_directory(there) &&
                    (fs::is_empty(folder_, failed) || is_shard_set(folder_));
  if (fs::exists(there) && !ours)
    throw std::invalid_argument(
        "expected a new or empty folder, or an earlier set, got " + folder_);
  failed.clear();  // that nothing is there is no failure
  const fs::path parent = fs::path(folder_).parent_path();
  if (!parent.empty()) fs::create_directories(parent, failed);
  check(failed, folder_);
  lock_ = std::make_unique<Lock>(folder_);
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
  check(change_places(temporary_, folder_), folder_);
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);  // the earlier one
  temporary_.clear();
}

}  // namespace lagwise::data
