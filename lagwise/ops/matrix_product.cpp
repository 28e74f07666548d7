#include "lagwise/ops/matrix_product.h"

#include <algorithm>
#include <vector>

#include "lagwise/ops/products/by_torch.h"
#include "lagwise/ops/products/products.h"
#include "lagwise/ops/products/tiles.h"

namespace lagwise::ops {
namespace {

/// The numbers of x as f32, dense, in the order in which they lie in memory.
class Widened {
 public:
  explicit Widened(MatView<const c10::BFloat16> x)
      : turned_(x.col_step != 1), rows_(x.rows), cols_(x.cols) {
    if (turned_) x = x.transposed();
    numbers_.resize(static_cast<size_t>(x.rows * x.cols));
    for (int64_t i = 0; i < x.rows; ++i)
      std::copy_n(x.row(i), x.cols, numbers_.data() + i * x.cols);
  }
  MatView<const float> view() const {
    return turned_ ? MatView<const float>{numbers_.data(), rows_, cols_, 1, rows_}
                   : MatView<const float>{numbers_.data(), rows_, cols_, cols_, 1};
  }

 private:
  bool turned_;
  int64_t rows_, cols_;
  std::vector<float> numbers_;
};

/// Whether the product is done without a multiplication: there is nothing to write, or
/// nothing to sum.
template <class T, class U>
bool trivial(const MatView<const T>& a, bool add, MatView<U> c) {
  if (c.rows == 0 || c.cols == 0) return true;
  if (a.cols > 0) return false;
  for (int64_t i = 0; i < c.rows && !add; ++i) std::fill_n(c.row(i), c.cols, U{0});
  return true;
}

}  // namespace

ShortProduct best_short_product() {
  static const ShortProduct best = products::can_use_tiles() ? ShortProduct::tiles
                                   : products::has_bf16_instructions()
                                       ? ShortProduct::instructions
                                       : ShortProduct::widening;
  return best;
}

void multiply(MatView<const c10::BFloat16> a, MatView<const c10::BFloat16> b, bool add,
              MatView<float> c, ShortProduct way) {
  if (trivial(a, add, c)) return;
  if (way == ShortProduct::tiles) return products::multiply_by_tiles(a, b, add, c);
  if (way == ShortProduct::instructions) return products::multiply_bf16(a, b, add, c);
  products::multiply_f32(Widened(a).view(), Widened(b).view(), add, c);
}

void multiply(MatView<const float> a, MatView<const float> b, bool add,
              MatView<float> c) {
  if (!trivial(a, add, c)) products::multiply_f32(a, b, add, c);
}

void multiply(MatView<const double> a, MatView<const double> b, bool add,
              MatView<double> c) {
  if (!trivial(a, add, c)) products::multiply_by_torch(a, b, add, c);
}

std::string matrix_product_library() { return products::library(); }

}  // namespace lagwise::ops
