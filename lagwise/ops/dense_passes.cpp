#include "lagwise/ops/dense_passes.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <functional>

#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/parallel/pieces.h"

namespace lagwise::ops {

at::Tensor dense_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}

template <class T>
void dense_some_rows(MatView<const T> x, const at::Tensor& weight,
                     const at::Tensor& bias, MatView<const T> start, MatView<T> y) {
  const T* const b = bias.defined() ? bias.data_ptr<T>() : nullptr;
  for (int64_t i = 0; i < y.rows && (b || start.data); ++i) {
    T* const to = y.row(i);
    if (!start.data)
      std::copy_n(b, y.cols, to);
    else if (!b)
      std::copy_n(start.row(i), y.cols, to);
    else
      std::transform(b, b + y.cols, start.row(i), to, std::plus<T>());
  }
  multiply(x, matrix_view<const T>(weight).transposed(), b || start.data, y);
}
template void dense_some_rows<float>(MatView<const float>, const at::Tensor&,
                                     const at::Tensor&, MatView<const float>,
                                     MatView<float>);
template void dense_some_rows<double>(MatView<const double>, const at::Tensor&,
                                      const at::Tensor&, MatView<const double>,
                                      MatView<double>);

at::Tensor dense_forward(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, const at::Tensor& start) {
  const at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "dense", [&] {
    in_pieces(x.size(0), kDenseRows, [&](int64_t begin, int64_t end) {
      MatView<const scalar_t> from{};
      if (start.defined()) from = matrix_view<const scalar_t>(start).slice(begin, end);
      dense_some_rows<scalar_t>(matrix_view<const scalar_t>(x).slice(begin, end),
                                weight, bias, from,
                                matrix_view<scalar_t>(y).slice(begin, end));
    });
  });
  return y;
}

void dense_input_gradient(const at::Tensor& dy, const at::Tensor& weight, bool add,
                          const at::Tensor& dx) {
  AT_DISPATCH_FLOATING_TYPES(dy.scalar_type(), "dense", [&] {
    in_pieces(dy.size(0), kDenseRows, [&](int64_t begin, int64_t end) {
      multiply(matrix_view<const scalar_t>(dy).slice(begin, end),
               matrix_view<const scalar_t>(weight), add,
               matrix_view<scalar_t>(dx).slice(begin, end));
    });
  });
}

void dense_weight_gradients(const at::Tensor& dy, const at::Tensor& x,
                            const at::Tensor& dw, const at::Tensor& db) {
  constexpr int64_t kOutputs = 16;  // of a piece, at least
  const int64_t rows = dy.size(0);
  const at::Tensor ones = db.defined() ? at::ones({1, rows}, dy.options()) : db;
  AT_DISPATCH_FLOATING_TYPES(dy.scalar_type(), "dense", [&] {
    in_pieces(dy.size(1), kOutputs, [&](int64_t begin, int64_t end) {
      const auto some = matrix_view<const scalar_t>(dy).columns(begin, end);
      if (dw.defined())
        multiply(some.transposed(), matrix_view<const scalar_t>(x), false,
                 matrix_view<scalar_t>(dw).slice(begin, end));
      if (db.defined())
        multiply(matrix_view<const scalar_t>(ones), some, false,
                 {db.data_ptr<scalar_t>() + begin, 1, end - begin, end - begin, 1});
    });
  });
}

}  // namespace lagwise::ops
