#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/core/mat_view.h"

/// The passes of a dense layer y = x W^T + b, without autograd. All tensors are of one
/// type, f32 or f64; x [rows, I], y [rows, O], weight [O, I] and bias [O] are dense.
/// Products are cut into pieces for the threads of ATen, each for one thread.
namespace lagwise::ops {

/// Rows of a piece of the passes below, at least.
inline constexpr int64_t kDenseRows = 64;

/// The last axis side by side, all others as rows.
at::Tensor dense_rows(const at::Tensor& x);

template <class T>
MatView<T> matrix_view(const at::Tensor& x) {
  return {static_cast<T*>(x.data_ptr()), x.size(0), x.size(1), x.size(1), 1};
}

/// Rows of y = x W^T + b + start; undefined bias and start are 0. By one thread.
template <class T>
void dense_some_rows(MatView<const T> x, const at::Tensor& weight,
                     const at::Tensor& bias, MatView<const T> start, MatView<T> y);

/// y = x W^T + b + start [rows, O].
at::Tensor dense_forward(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, const at::Tensor& start = {});

/// dx = dy W, or dx += dy W.
void dense_input_gradient(const at::Tensor& dy, const at::Tensor& weight, bool add,
                          const at::Tensor& dx);

/// dW = dy^T x and db = sum over rows of dy, those that are defined.
void dense_weight_gradients(const at::Tensor& dy, const at::Tensor& x,
                            const at::Tensor& dw, const at::Tensor& db);

}  // namespace lagwise::ops
