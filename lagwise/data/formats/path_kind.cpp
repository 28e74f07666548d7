#include "lagwise/data/formats/path_kind.h"

#include <filesystem>

#include "lagwise/core/errors.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

bool is_known(const fs::file_status& status, const std::string& path,
              const std::error_code& failed) {
  if (status.type() == fs::file_type::none)
    throw DataError(path, -1, "a readable file: " + failed.message());
  return fs::exists(status);
}

}  // namespace

bool is_there(const std::string& path) {
  std::error_code failed;
  return is_known(fs::symlink_status(path, failed), path, failed);
}

bool is_folder(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  return is_known(status, path, failed) && fs::is_directory(status);
}

}  // namespace lagwise::data
