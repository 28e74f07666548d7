#include "lagwise/cli/replace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace lagwise::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& file, int reason) {
  throw std::runtime_error(
      fmt::format("cannot write {}: {}", file, std::strerror(reason)));
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

// Returns errno's reason, 0 for success.
int write_whole(const fs::path& file, const std::string& contents) {
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << contents;
  out.close();
  if (out) return 0;
  return errno != 0 ? errno : EIO;
}

}  // namespace

void check_replaceable(const std::string& file) {
  const fs::path target = target_of(file);
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) refuse(file, EISDIR);
  if (access(file.c_str(), F_OK) == 0 && access(file.c_str(), W_OK) != 0)
    refuse(file, errno);
  if (is_special(file)) return;
  const fs::path folder = folder_of(target) / "";  // the slash: must be a folder
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(file, errno);
}

void replace_file(const std::string& file, const std::string& contents) {
  check_replaceable(file);
  const bool special = is_special(file);
  const fs::path target = target_of(file);
  const fs::path written =
      special ? fs::path(file)
              : fs::path(fmt::format("{}.{}.tmp", target.string(), getpid()));
  const int reason = write_whole(written, contents);
  if (special && reason != 0) refuse(file, reason);
  if (special) return;

  std::error_code failed(reason, std::generic_category()), ignored;
  const fs::file_status old = fs::status(target, ignored);
  if (fs::exists(old)) fs::permissions(written, old.permissions(), ignored);
  if (!failed) fs::rename(written, target, failed);
  if (!failed) return;
  fs::remove(written, ignored);
  refuse(file, failed.value());
}

}  // namespace lagwise::cli
