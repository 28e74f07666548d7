#pragma once

#include <string>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// A file as memory, read page by page when it is looked at. Throws DataError when
/// the file is missing, unreadable, or no regular file.
///
/// Whoever shortens the file meanwhile takes the pages away (SIGBUS): files are replaced
/// whole (data/formats/atomic_file.h), which leaves those already open as they were.
/// Where a program gets the signal all the same, data/formats/mapped_places.h knows of
/// which file.
class MappedFile {
 public:
  explicit MappedFile(const std::string& file);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& name() const { return name_; }
  Bytes bytes() const { return bytes_; }

  /// That bytes [first, first + count) will be looked at soon: the system fetches their
  /// pages meanwhile. Beyond the end there is nothing to fetch.
  void will_read(size_t first, size_t count) const;

 private:
  std::string name_;
  Bytes bytes_;
};

}  // namespace lagwise::data
