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

namespace {

/// How the sums over rows of a layer's weights are cut: into ranges of rows, whose
/// results are added afterwards in their order, and of outputs. A range of outputs reads
/// all of x, one of rows only its own; but each of those needs room for all weights.
struct WeightPieces {
  int64_t ranges_of_rows, ranges_of_outputs;

  WeightPieces(int64_t rows, int64_t outputs, int64_t inputs) {
    constexpr int64_t kFewWeights = 1 << 16, kRows = 512, kOutputs = 16;
    const bool few = outputs * inputs <= kFewWeights;
    ranges_of_rows = std::clamp<int64_t>(rows / kRows, 1, few ? 8 : 4);
    const int64_t most = std::max<int64_t>(1, outputs / kOutputs);
    ranges_of_outputs =
        std::min<int64_t>(most, ranges_of_rows > 4 ? 1 : 8 / ranges_of_rows);
  }
};

/// The sums of one piece.
template <class T>
void sum_piece(MatView<const T> dy, MatView<const T> x, MatView<T> dw, T* db,
               const T* ones) {
  if (dw.data) multiply(dy.transposed(), x, false, dw);
  if (db)
    multiply(MatView<const T>{ones, 1, dy.rows, dy.rows, 1}, dy, false,
             MatView<T>{db, 1, dy.cols, dy.cols, 1});
}

}  // namespace

void dense_weight_gradients(const at::Tensor& dy, const at::Tensor& x,
                            const at::Tensor& dw, const at::Tensor& db) {
  const int64_t rows = dy.size(0), outputs = dy.size(1), inputs = x.size(1);
  const WeightPieces cut(rows, outputs, inputs);
  const int64_t others = cut.ranges_of_rows - 1;  // beside the first range of rows
  const auto room = [&](const at::Tensor& like) {
    return like.defined() && others > 0
               ? at::empty({others, like.numel()}, like.options())
               : at::Tensor();
  };
  const at::Tensor more_w = room(dw), more_b = room(db);
  const at::Tensor ones = db.defined() ? at::ones({rows}, dy.options()) : db;
  AT_DISPATCH_FLOATING_TYPES(dy.scalar_type(), "dense", [&] {
    const auto place = [&](const at::Tensor& first, const at::Tensor& more,
                           int64_t range) -> scalar_t* {
      if (!first.defined()) return nullptr;
      return range == 0 ? first.data_ptr<scalar_t>()
                        : more.data_ptr<scalar_t>() + (range - 1) * first.numel();
    };
    const auto edge = [](int64_t size, int64_t i, int64_t count) {
      return size * i / count;
    };
    at::parallel_for(
        0, cut.ranges_of_rows * cut.ranges_of_outputs, 1,
        [&](int64_t first, int64_t last) {
          for (int64_t piece = first; piece < last; ++piece) {
            const int64_t r = piece / cut.ranges_of_outputs,
                          o = piece % cut.ranges_of_outputs;
            const int64_t row = edge(rows, r, cut.ranges_of_rows);
            const int64_t row_end = edge(rows, r + 1, cut.ranges_of_rows);
            const int64_t out = edge(outputs, o, cut.ranges_of_outputs);
            const int64_t out_end = edge(outputs, o + 1, cut.ranges_of_outputs);
            scalar_t* const w = place(dw, more_w, r);
            scalar_t* const b = place(db, more_b, r);
            MatView<scalar_t> to{};
            if (w) to = {w + out * inputs, out_end - out, inputs, inputs, 1};
            sum_piece<scalar_t>(matrix_view<const scalar_t>(dy)
                                    .slice(row, row_end)
                                    .columns(out, out_end),
                                matrix_view<const scalar_t>(x).slice(row, row_end), to,
                                b ? b + out : nullptr,
                                ones.defined() ? ones.data_ptr<scalar_t>() : nullptr);
          }
        });
  });
  for (int64_t i = 0; i < others; ++i) {
    if (dw.defined()) dw.add_(more_w[i].view(dw.sizes()));
    if (db.defined()) db.add_(more_b[i]);
  }
}

}  // namespace lagwise::ops
