#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace lagwise {

/// Numbers side by side that never change: made by somebody and owned together, or
/// borrowed from memory that outlives them, such as a mapped file.
template <class T>
class Numbers {
 public:
  Numbers() = default;
  Numbers(std::vector<T> values)  // NOLINT: a vector is a list of numbers
      : own_(std::make_shared<const std::vector<T>>(std::move(values))), seen_(*own_) {}
  static Numbers borrowed(std::span<const T> values) {
    Numbers numbers;
    numbers.seen_ = values;
    return numbers;
  }

  bool empty() const { return seen_.empty(); }
  int64_t size() const { return static_cast<int64_t>(seen_.size()); }
  const T* data() const { return seen_.data(); }
  const T& operator[](int64_t i) const { return seen_[static_cast<size_t>(i)]; }
  std::span<const T> span() const { return seen_; }

 private:
  std::shared_ptr<const std::vector<T>> own_;
  std::span<const T> seen_;
};

}  // namespace lagwise
