#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace lagwise {

// What can go wrong through no fault of the code. `lagwise` (the program) turns
// each into its exit code; wrong options are std::invalid_argument.

/// A file is not what it should be. Exit code 3.
class DataError : public std::runtime_error {
 public:
  /// `offset` in bytes from the start of the file; negative where none applies.
  DataError(const std::string& file, int64_t offset, const std::string& expected)
      : std::runtime_error(file +
                           (offset < 0 ? "" : ", byte " + std::to_string(offset)) +
                           ": expected " + expected),
        file_(file),
        offset_(offset) {}

  const std::string& file() const { return file_; }
  int64_t offset() const { return offset_; }

 private:
  std::string file_;
  int64_t offset_;
};

/// The loss is no longer a finite number. Exit code 4.
class Diverged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user asked to stop, and what there was has been saved. Exit code 130.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lagwise
