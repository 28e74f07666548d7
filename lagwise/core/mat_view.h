#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

namespace lagwise {

/// A matrix that lives elsewhere: element (i, j) stands at
/// data[i * row_step + j * col_step]. Steps may be negative (`reversed`) or
/// zero (a broadcast row), so any two axes of any tensor fit without a copy.
template <class T>
struct MatView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_step = 0;
  int64_t col_step = 1;

  T* row(int64_t i) const {
    assert(i >= 0 && i < rows);
    return data + i * row_step;
  }
  T& operator()(int64_t i, int64_t j) const {
    assert(j >= 0 && j < cols);
    return row(i)[j * col_step];
  }

  /// Rows [begin, end).
  MatView slice(int64_t begin, int64_t end) const {
    assert(0 <= begin && begin <= end && end <= rows);
    return {data + begin * row_step, end - begin, cols, row_step, col_step};
  }
  /// Columns [begin, end).
  MatView columns(int64_t begin, int64_t end) const {
    assert(0 <= begin && begin <= end && end <= cols);
    return {data + begin * col_step, rows, end - begin, row_step, col_step};
  }
  /// The same rows, last first: a pass over it runs backwards in time.
  MatView reversed() const {
    if (rows == 0) return *this;
    return {data + (rows - 1) * row_step, rows, cols, -row_step, col_step};
  }
  MatView transposed() const { return {data, cols, rows, col_step, row_step}; }

  operator MatView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, row_step, col_step};
  }
};

}  // namespace lagwise
