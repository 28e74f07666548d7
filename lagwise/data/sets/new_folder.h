#pragma once

#include <memory>
#include <string>

namespace lagwise::data {

/// A folder that appears whole or not at all:
///
///     lock FOLDER.lock -> write into FOLDER.tmp -> commit() renames it to FOLDER
///
/// Until then an earlier FOLDER stands as it was, and both change places in one step;
/// without commit() FOLDER.tmp goes. A killed process leaves it, and the next one
/// starts it anew. While one process writes, a second is refused with
/// std::runtime_error. Only an earlier set of shards (it has a manifest.json) or an
/// empty folder is replaced: anything else is refused with std::invalid_argument before
/// the work starts. Errors of the system are std::runtime_error with its reason.
class NewFolder {
 public:
  explicit NewFolder(std::string folder);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::string& path() const { return temporary_; }  ///< to write into
  const std::string& name() const { return folder_; }     ///< what it will be called
  void commit();

 private:
  struct Lock;

  std::string folder_, temporary_;
  std::unique_ptr<Lock> lock_;
};

}  // namespace lagwise::data
