#include "lagwise/data/formats/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& file, const std::string& reason) {
  throw std::runtime_error("cannot write " + file + ": " + reason);
}

// A link keeps its place; what it points to is replaced.
fs::path target_of(const std::string& file) {
  std::error_code ignored;
  const fs::path target = fs::canonical(file, ignored);
  return target.empty() ? fs::path(file) : target;
}

bool is_special(const fs::path& file) {
  std::error_code ignored;
  return fs::is_other(fs::status(file, ignored));
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// A link or pipe in the place of the temporary file is not ours: refused.
constexpr int kOwnFile = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

// Opens `name` and locks it, or returns -1 with errno set. Between opening and
// locking, the writer before us may have renamed it: then what we hold is the
// finished file, and truncating it would be the very thing we promise not to do.
int open_locked(const std::string& name) {
  for (;;) {
    const int opened = open(name.c_str(), kOwnFile, 0666);
    if (opened < 0) return -1;
    struct stat held, named;
    const bool locked = flock(opened, LOCK_EX | LOCK_NB) == 0;
    const int reason = errno;
    if (locked && fstat(opened, &held) == 0 && stat(name.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino && held.st_dev == named.st_dev)
      return opened;
    close(opened);
    errno = reason;
    if (!locked) return -1;
  }
}

}  // namespace

int sync_folder(const std::string& folder, const FileCalls& calls) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return errno;
  const int reason = calls.sync(opened) == 0 || errno == EINVAL ? 0 : errno;
  close(opened);
  return reason;
}

FileCalls::FileCalls()
    : write(::write),
      sync(::fsync),
      rename([](const char* from, const char* to) { return std::rename(from, to); }) {}

AtomicFile::AtomicFile(const std::string& file, FileCalls calls)
    : file_(file), target_(target_of(file).string()), calls_(std::move(calls)) {
  check_replaceable(file);
  if (is_special(file)) {
    descriptor_ = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) refuse(errno);
  } else {
    open_temporary();
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::open_temporary() {
  const std::string name = target_ + ".tmp";
  descriptor_ = open_locked(name);
  if (descriptor_ < 0 && errno == EWOULDBLOCK)
    cannot_write(file_, "another process is writing it");
  if (descriptor_ < 0) refuse(errno);
  temporary_ = name;
  if (ftruncate(descriptor_, 0) != 0) refuse(errno);
  struct stat old;
  if (stat(target_.c_str(), &old) == 0 && fchmod(descriptor_, old.st_mode & 07777) != 0)
    refuse(errno);
}

void AtomicFile::write(Bytes bytes) {
  if (descriptor_ < 0) cannot_write(file_, "it is closed");
  while (!bytes.empty()) {
    const ssize_t written = calls_.write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(errno);
    if (written == 0) refuse(EIO);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (descriptor_ < 0) cannot_write(file_, "it is closed");
  if (temporary_.empty()) return discard();  // a device: nothing to rename
  if (calls_.sync(descriptor_) != 0) refuse(errno);
  if (calls_.rename(temporary_.c_str(), target_.c_str()) != 0) refuse(errno);
  temporary_.clear();
  discard();
  const int reason = sync_folder(folder_of(target_).string(), calls_);
  if (reason != 0) refuse(reason);
}

void AtomicFile::discard() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  if (descriptor_ >= 0) close(descriptor_);
  temporary_.clear();
  descriptor_ = -1;
}

void AtomicFile::refuse(int reason) {
  discard();
  cannot_write(file_, std::strerror(reason));
}

void check_replaceable(const std::string& file) {
  const fs::path target = target_of(file);
  std::error_code ignored;
  const auto refuse = [&](int reason) { cannot_write(file, std::strerror(reason)); };
  if (fs::is_directory(target, ignored)) refuse(EISDIR);
  if (access(file.c_str(), F_OK) == 0 && access(file.c_str(), W_OK) != 0) refuse(errno);
  if (is_special(file)) return;
  const fs::path folder = folder_of(target) / "";  // the slash: must be a folder
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(errno);
}

void replace_file(const std::string& file, std::string_view contents, FileCalls calls) {
  AtomicFile out(file, std::move(calls));
  out.write(contents);
  out.commit();
}

}  // namespace lagwise::data
