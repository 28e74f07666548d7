#pragma once

#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// Reads bytes in order and never past their end: what is missing is a DataError
/// that names the file, the offset and what should have stood there.
class ByteCursor {
 public:
  /// `start` is the place of the first byte in the file.
  ByteCursor(const std::string& file, Bytes bytes, size_t start = 0)
      : file_(file), bytes_(bytes), start_(start) {}

  size_t offset() const { return start_ + at_; }
  size_t left() const { return bytes_.size() - at_; }
  bool done() const { return left() == 0; }
  const std::string& file() const { return file_; }

  [[noreturn]] void fail(const std::string& expected) const {
    fail_at(offset(), expected);
  }
  [[noreturn]] void fail_at(size_t offset, const std::string& expected) const {
    throw DataError(file_, static_cast<int64_t>(offset), expected);
  }

  /// The next `count` bytes; `what` completes "expected ... of <what>".
  Bytes take(size_t count, const char* what) {
    if (count > left())
      fail(std::to_string(count) + " bytes of " + what + ", the file has " +
           std::to_string(left()) + " more");
    const Bytes taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  uint8_t byte(const char* what) { return take(1, what)[0]; }

  /// The next byte, still unread.
  uint8_t peek(const char* what) {
    const uint8_t next = byte(what);
    --at_;
    return next;
  }

  template <class T>
  T big_endian(const char* what) {
    T value = 0;
    for (const uint8_t byte : take(sizeof(T), what))
      value = static_cast<T>(value << 8 | byte);
    return value;
  }

  template <class T>
  T little_endian(const char* what) {
    T value = 0;
    int shift = 0;
    for (const uint8_t byte : take(sizeof(T), what)) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(byte) << shift));
      shift += 8;
    }
    return value;
  }

 private:
  std::string file_;
  Bytes bytes_;
  size_t start_, at_ = 0;
};

}  // namespace lagwise::data
