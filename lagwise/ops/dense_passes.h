#pragma once

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include "lagwise/core/mat_view.h"
#include "lagwise/ops/dense.h"

/// The passes of a dense layer y = x W^T + b, without autograd. x [rows, I], y [rows, O],
/// weight [O, I] and bias [O] are dense. Products are cut into pieces for the threads of
/// ATen, each for one thread.
///
/// Factors of products (x, weight, dy) are f32, f64 or bf16, all of one type; what is
/// summed (y, bias, start and gradients) is of the type SumOf of it.
namespace lagwise::ops {

/// f32 of bf16, else the type itself.
template <class T>
using SumOf = at::opmath_type<T>;
inline at::ScalarType sum_type(at::ScalarType factors) {
  return factors == at::kBFloat16 ? at::kFloat : factors;
}

/// Rows of a piece of the passes below, at least.
inline constexpr int64_t kDenseRows = 64;

/// How many rows pass through a layer, or several, before the next ones come. With few
/// weights rows and weights stay in the second cache together; many are read anew by every
/// product, which must then be worth it.
inline int64_t rows_at_once(int64_t weights) { return weights <= 1 << 16 ? 256 : 512; }

/// The last axis side by side, all others as rows.
at::Tensor dense_rows(const at::Tensor& x);

template <class T>
MatView<T> matrix_view(const at::Tensor& x) {
  return {static_cast<T*>(x.data_ptr()), x.size(0), x.size(1), x.size(1), 1};
}

/// Rows of y = x W^T + b + start; undefined bias and start are 0. By one thread.
template <class T>
void dense_some_rows(MatView<const T> x, const at::Tensor& weight,
                     const at::Tensor& bias, MatView<const SumOf<T>> start,
                     MatView<SumOf<T>> y);

/// The gradient of a bias: sums of d [rows, O] over its rows, to `to` [O] or added to it.
/// `ones` has as many 1 as there are rows, or more: in f32 and f64 it is a product.
template <class T>
void sum_over_rows(MatView<const T> d, const at::Tensor& ones, bool add, SumOf<T>* to);

/// Into how many ranges of rows the sums over rows are cut that give the gradients of
/// so many weights. Each range sums on its own, so each needs room for all weights.
int64_t ranges_of_rows(int64_t rows, int64_t weights);

/// Sums over ranges of rows, added up in their order: the first is `to` itself. They
/// begin with anything, or with 0.
class RangeSums {
 public:
  RangeSums(const at::Tensor& to, int64_t ranges, bool cleared = false);

  /// Where a range puts its sum; null where `to` is undefined.
  template <class T>
  T* of(int64_t range) const {
    if (!to_.defined()) return nullptr;
    return range == 0 ? to_.data_ptr<T>()
                      : more_.data_ptr<T>() + (range - 1) * to_.numel();
  }
  /// Call it once all are there.
  void add_up() const;

 private:
  at::Tensor to_, more_;  // more_ [ranges - 1, numbers of to]
};

}  // namespace lagwise::ops
