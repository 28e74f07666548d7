#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "lagwise/core/mat_view.h"
#include "lagwise/core/noise.h"

namespace lagwise::testing {

/// Ways to lay a matrix out in memory. A kernel must take every one of them.
enum class Storage {
  dense,       ///< rows one after another
  padded,      ///< a gap after each row
  transposed,  ///< columns one after another
  reversed,    ///< the last row first: a negative row step
  spread,      ///< a gap after each element as well
  mirrored,    ///< the last column first: a negative column step
};
inline constexpr std::array kEveryStorage = {Storage::dense,      Storage::padded,
                                             Storage::transposed, Storage::reversed,
                                             Storage::spread,     Storage::mirrored};

inline const char* name_of(Storage storage) {
  constexpr const char* kNames[] = {"dense",    "padded", "transposed",
                                    "reversed", "spread", "mirrored"};
  return kNames[static_cast<int>(storage)];
}

/// Element (i, j) stands at i * row + j * col from element (0, 0).
struct Steps {
  int64_t row, col;
};

inline Steps steps_of(Storage storage, int64_t rows, int64_t cols) {
  switch (storage) {
    case Storage::padded:
      return {cols + 3, 1};
    case Storage::transposed:
      return {1, rows};
    case Storage::reversed:
      return {-cols, 1};
    case Storage::spread:
      return {3 * cols + 5, 3};
    case Storage::mirrored:
      return {cols, -1};
    default:
      return {cols, 1};
  }
}

/// A matrix for tests. It is born full of NaN, so an output that was not written
/// shows; and all memory around and between its elements holds canaries, checked
/// when it dies, so a stray write shows too. A stray read yields NaN.
template <class T>
class Mat {
 public:
  Mat(int64_t rows, int64_t cols, Steps steps)
      : rows_(rows), cols_(cols), steps_(steps) {
    if (rows == 0 || cols == 0) {
      data_.assign(2 * kGuard, canary());
      return;
    }
    const int64_t down = (rows - 1) * steps.row, across = (cols - 1) * steps.col;
    const int64_t before = -std::min<int64_t>(down, 0) - std::min<int64_t>(across, 0);
    const int64_t after = std::max<int64_t>(down, 0) + std::max<int64_t>(across, 0);
    first_ = kGuard + before;
    data_.assign(static_cast<size_t>(first_ + after + 1 + kGuard), canary());
    fill(std::numeric_limits<T>::quiet_NaN());
  }
  explicit Mat(int64_t rows, int64_t cols, Storage storage = Storage::dense)
      : Mat(rows, cols, steps_of(storage, rows, cols)) {}
  Mat(int64_t rows, int64_t cols, T value, Storage storage = Storage::dense)
      : Mat(rows, cols, storage) {
    fill(value);
  }

  /// Numbers in [low, high] that depend on (seed, i, j) alone, not on the storage.
  static Mat uniform(int64_t rows, int64_t cols, uint64_t seed, double low, double high,
                     Storage storage = Storage::dense) {
    Mat mat(rows, cols, storage);
    const Noise noise(seed);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        mat(i, j) =
            static_cast<T>(low + (high - low) * noise.at({.feature = i}).uniform(j));
    return mat;
  }

  Mat(const Mat&) = default;
  Mat(Mat&&) = default;
  Mat& operator=(const Mat&) = default;
  Mat& operator=(Mat&&) = default;
  ~Mat() { check_canaries(); }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  T* data() { return data_.data() + first_; }  ///< element (0, 0)
  const T* data() const { return data_.data() + first_; }
  T& operator()(int64_t i, int64_t j) { return view()(i, j); }
  T operator()(int64_t i, int64_t j) const { return view()(i, j); }
  MatView<T> view() { return {data(), rows_, cols_, steps_.row, steps_.col}; }
  MatView<const T> view() const {
    return {data(), rows_, cols_, steps_.row, steps_.col};
  }

  void fill(T value) {
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < cols_; ++j) (*this)(i, j) = value;
  }

  /// Fails the test if memory beside the elements was written. The damage is then
  /// repaired, so that it is reported once.
  void check_canaries() {
    if (data_.empty()) return;  // moved from
    std::vector<bool> ours(data_.size());
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < cols_; ++j)
        ours[static_cast<size_t>(first_ + i * steps_.row + j * steps_.col)] = true;
    for (size_t at = 0; at < data_.size(); ++at) {
      if (ours[at] || std::bit_cast<Bits>(data_[at]) == kCanary) continue;
      ADD_FAILURE() << "canary overwritten with " << data_[at] << " at "
                    << static_cast<int64_t>(at) - first_ << " from element (0, 0) of "
                    << rows_ << " x " << cols_;
      data_[at] = canary();
    }
  }

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  // A NaN that no arithmetic produces.
  static constexpr Bits kCanary =
      static_cast<Bits>(sizeof(T) == 4 ? 0x7fedbeef : 0x7ffdeadbeefdeadb);
  static constexpr int64_t kGuard = 64;  // elements at either end: past any vector
  static T canary() { return std::bit_cast<T>(kCanary); }

  int64_t rows_, cols_;
  Steps steps_;
  int64_t first_ = kGuard;  // where element (0, 0) stands in data_
  std::vector<T> data_;
};

}  // namespace lagwise::testing
