#include "lagwise/ops/dense_passes.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>

#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/parallel/pieces.h"
#include "lagwise/ops/parallel/sums_in_order.h"

namespace lagwise::ops {

at::Tensor dense_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}

template <class T>
void dense_some_rows(MatView<const T> x, const at::Tensor& weight,
                     const at::Tensor& bias, MatView<const SumOf<T>> start,
                     MatView<SumOf<T>> y) {
  using Sum = SumOf<T>;
  multiply(x, matrix_view<const T>(weight).transposed(), false, y);
  // Afterwards, while y is in the cache: before, a product would have to read it again.
  const Sum* const b = bias.defined() ? bias.data_ptr<Sum>() : nullptr;
  for (int64_t i = 0; i < y.rows && (b || start.data); ++i) {
    Sum* const to = y.row(i);
    const Sum* const from = start.data ? start.row(i) : nullptr;
    if (b && from)
      for (int64_t j = 0; j < y.cols; ++j) to[j] += from[j] + b[j];
    else
      for (int64_t j = 0; j < y.cols; ++j) to[j] += (b ? b : from)[j];
  }
}
template void dense_some_rows<float>(MatView<const float>, const at::Tensor&,
                                     const at::Tensor&, MatView<const float>,
                                     MatView<float>);
template void dense_some_rows<double>(MatView<const double>, const at::Tensor&,
                                      const at::Tensor&, MatView<const double>,
                                      MatView<double>);
template void dense_some_rows<c10::BFloat16>(MatView<const c10::BFloat16>,
                                             const at::Tensor&, const at::Tensor&,
                                             MatView<const float>, MatView<float>);

at::Tensor dense_forward(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, const at::Tensor& start) {
  const at::Tensor y = at::empty({x.size(0), weight.size(0)},
                                 x.options().dtype(sum_type(x.scalar_type())));
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "dense", [&] {
    using Sum = SumOf<scalar_t>;
    in_pieces(x.size(0), kDenseRows, [&](int64_t begin, int64_t end) {
      MatView<const Sum> from{};
      if (start.defined()) from = matrix_view<const Sum>(start).slice(begin, end);
      dense_some_rows<scalar_t>(matrix_view<const scalar_t>(x).slice(begin, end),
                                weight, bias, from,
                                matrix_view<Sum>(y).slice(begin, end));
    });
  });
  return y;
}

void dense_input_gradient(const at::Tensor& dy, const at::Tensor& weight, bool add,
                          const at::Tensor& dx) {
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, dy.scalar_type(), "dense", [&] {
    in_pieces(dy.size(0), kDenseRows, [&](int64_t begin, int64_t end) {
      multiply(matrix_view<const scalar_t>(dy).slice(begin, end),
               matrix_view<const scalar_t>(weight), add,
               matrix_view<SumOf<scalar_t>>(dx).slice(begin, end));
    });
  });
}

int64_t ranges_of_rows(int64_t rows, int64_t weights) {
  constexpr int64_t kFewWeights = 1 << 16, kRows = 512;
  return std::clamp<int64_t>(rows / kRows, 1, weights <= kFewWeights ? 8 : 4);
}

RangeSums::RangeSums(const at::Tensor& to, int64_t ranges, bool cleared) : to_(to) {
  if (to.defined() && ranges > 1)
    more_ = at::empty({ranges - 1, to.numel()}, to.options());
  if (!cleared) return;
  for (const at::Tensor* part : {&to_, &more_})
    if (part->defined()) part->zero_();
}

void RangeSums::add_up() const {
  if (more_.defined()) add_in_order(more_, to_);
}

/// Cut into ranges of rows and of outputs. A range of outputs reads all of x, one of rows
/// only its own; so rows are cut first.
void dense_weight_gradients(const at::Tensor& dy, const at::Tensor& x,
                            const at::Tensor& dw, const at::Tensor& db) {
  constexpr int64_t kOutputs = 16;  // of a range, at least
  const int64_t rows = dy.size(0), outputs = dy.size(1), inputs = x.size(1);
  const int64_t by_rows = ranges_of_rows(rows, outputs * inputs);
  const int64_t by_outputs = std::clamp<int64_t>(outputs / kOutputs, 1, 8 / by_rows);
  const RangeSums w(dw, by_rows), b(db, by_rows);
  const at::Tensor ones = at::ones({1, rows}, dy.options());
  const auto edge = [](int64_t size, int64_t i, int64_t count) {
    return size * i / count;
  };
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, dy.scalar_type(), "dense", [&] {
    using Sum = SumOf<scalar_t>;
    at::parallel_for(0, by_rows * by_outputs, 1, [&](int64_t first, int64_t last) {
      for (int64_t piece = first; piece < last; ++piece) {
        const int64_t r = piece / by_outputs, o = piece % by_outputs;
        const int64_t row = edge(rows, r, by_rows), end = edge(rows, r + 1, by_rows);
        const int64_t out = edge(outputs, o, by_outputs);
        const int64_t count = edge(outputs, o + 1, by_outputs) - out;
        const auto some =
            matrix_view<const scalar_t>(dy).slice(row, end).columns(out, out + count);
        if (Sum* const to = w.of<Sum>(r))
          multiply(some.transposed(), matrix_view<const scalar_t>(x).slice(row, end),
                   false, {to + out * inputs, count, inputs, inputs, 1});
        if (Sum* const to = b.of<Sum>(r))
          multiply(matrix_view<const scalar_t>(ones).columns(row, end), some, false,
                   {to + out, 1, count, count, 1});
      }
    });
  });
  w.add_up(), b.add_up();
}

}  // namespace lagwise::ops
