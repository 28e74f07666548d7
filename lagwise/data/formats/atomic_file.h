#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// The calls through which a file is written; a test puts failing ones here.
struct FileCalls {
  std::function<ssize_t(int, const void*, size_t)> write;
  std::function<int(int)> sync;
  std::function<int(const char*, const char*)> rename;
  FileCalls();  ///< the system's
};

/// A file that gets all of its new contents or keeps the old ones, whatever happens:
///
///     write to FILE.tmp -> fsync -> rename to FILE -> fsync of the folder
///
/// Until commit() the old contents stand; without it, or after an error, FILE.tmp is
/// removed (a killed process leaves it, and the next writer takes it over). A link
/// keeps its place and what it points to is replaced; permissions are kept; a device
/// or pipe is written directly. One writer at a time: a second one is refused.
///
/// Errors are std::runtime_error with the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& file, FileCalls calls = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(Bytes bytes);
  void write(std::string_view text) { write(bytes_of(text)); }
  void commit();

 private:
  void open_temporary();
  void discard();
  [[noreturn]] void refuse(int reason);

  std::string file_;       // as the user calls it
  std::string target_;     // what is replaced: links followed
  std::string temporary_;  // empty: a device, written directly
  FileCalls calls_;
  int descriptor_ = -1;
};

/// Puts on the disk what a folder says about its files: only then does a rename last.
/// 0, or the system's reason. Some file systems cannot do this (EINVAL), and need not.
int sync_folder(const std::string& folder, const FileCalls& calls = {});

/// Throws std::runtime_error, with the system's reason, if `file` cannot be
/// written. Changes nothing, so that a wrong name fails before long work starts.
void check_replaceable(const std::string& file);

/// Gives `file` these contents, all of them or none.
void replace_file(const std::string& file, std::string_view contents,
                  FileCalls calls = {});

}  // namespace lagwise::data
