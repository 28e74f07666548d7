#include "lagwise/kernels/turn_table.h"

#include <cmath>
#include <limits>

namespace lagwise::kernels {
namespace {

constexpr int64_t kStride = 64;

/// Tables of turns: of 0..63 positions, each made when first needed, and of the one
/// multiple of 64 in use.
class Steps {
 public:
  Steps(const double* frequency, int64_t planes, double* scratch)
      : frequency_(frequency), planes_(planes), small_(scratch) {
    large_ = small_ + kStride * 2 * planes;
  }

  /// Rows of 2 P doubles, cosines then sines, of which planes [begin, end), those of
  /// one axis, are made ready.
  const double* small(int64_t steps, int64_t begin, int64_t end) {
    double* const row = small_ + steps * 2 * planes_;
    if (std::isnan(row[begin])) make(double(steps), begin, end, row);
    return row;
  }
  const double* large(double position, int64_t begin, int64_t end) {
    make(position, begin, end, large_);
    return large_;
  }
  void forget() {
    for (int64_t i = 0; i < kStride * 2 * planes_; ++i)
      small_[i] = std::numeric_limits<double>::quiet_NaN();
  }

 private:
  void make(double position, int64_t begin, int64_t end, double* row) const {
    for (int64_t j = begin; j < end; ++j) {
      const Turn t = turn(position, frequency_[j]);
      row[j] = t.c, row[planes_ + j] = t.s;
    }
  }

  const double* frequency_;
  int64_t planes_;
  double* small_;
  double* large_;
};

/// One axis of a table: its planes [begin, end) in all rows.
template <class T>
void fill_axis(MatView<const double> positions, int64_t axis, double scale,
               int64_t begin, int64_t end, Steps& steps, MatView<T> table) {
  if (begin == end) return;
  const int64_t planes = table.cols / 2;
  double last = std::numeric_limits<double>::quiet_NaN();
  const double* far = nullptr;
  for (int64_t i = 0; i < positions.rows; ++i) {
    const double p = positions(i, axis);
    const bool whole = p == std::floor(p);
    const double start = whole ? kStride * std::floor(p / kStride) : p;
    if (!far || start != last) far = steps.large(start, begin, end), last = start;
    const double* const near =
        steps.small(whole ? static_cast<int64_t>(p - start) : 0, begin, end);
    T* const row = table.row(i);
    for (int64_t j = begin; j < end; ++j) {
      const double c = far[j], s = far[planes + j];
      const double c1 = near[j], s1 = near[planes + j];
      row[j] = static_cast<T>(scale * (c * c1 - s * s1));
      row[planes + j] = static_cast<T>(scale * (s * c1 + c * s1));
    }
  }
}

}  // namespace

Turn turn(double position, double frequency) noexcept {
  const double hi = position * frequency;
  const double lo = std::fma(position, frequency, -hi);
  const double c = std::cos(hi), s = std::sin(hi);
  return {c - lo * s, s + lo * c};
}

template <class T>
void turn_table(MatView<const double> positions, const double* frequency, double scale,
                MatView<T> table, double* scratch) noexcept {
  const int64_t planes = table.cols / 2, axes = positions.cols;
  Steps steps(frequency, planes, scratch);
  steps.forget();
  for (int64_t a = 0; a < axes; ++a)
    fill_axis(positions, a, scale, a * planes / axes, (a + 1) * planes / axes, steps,
              table);
}

template void turn_table(MatView<const double>, const double*, double, MatView<float>,
                         double*) noexcept;
template void turn_table(MatView<const double>, const double*, double, MatView<double>,
                         double*) noexcept;

int64_t turn_table_scratch(int64_t planes) { return (kStride + 1) * 2 * planes; }

}  // namespace lagwise::kernels
