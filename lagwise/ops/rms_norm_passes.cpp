#include "lagwise/ops/rms_norm_passes.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lagwise/kernels/rms_norm.h"
#include "lagwise/ops/parallel/sums_in_order.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

/// Rows of one piece: 16384 numbers or so, and never more than 64 pieces, of which each
/// has a gradient of the gain for itself. Whole groups, so that each begins with one.
int64_t rows_of_piece(int64_t rows, int64_t cols, int64_t groups) {
  const int64_t piece =
      std::max({int64_t{1}, 16384 / std::max<int64_t>(cols, 1), (rows + 63) / 64});
  return (piece + groups - 1) / groups * groups;
}

/// How many rows have gains of their own.
int64_t groups_of(const Tensor& gain) {
  return gain.dim() == 2 ? std::max<int64_t>(1, gain.size(0)) : 1;
}

/// Calls fn(piece, begin, end) over pieces of the rows.
template <class Fn>
void in_pieces(int64_t rows, int64_t piece, const Fn& fn) {
  at::parallel_for(0, (rows + piece - 1) / piece, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      fn(i, i * piece, std::min(rows, (i + 1) * piece));
  });
}

template <class T>
MatView<T> rows_of(const Tensor& x) {
  const int64_t cols = x.size(-1);
  return {static_cast<T*>(x.data_ptr()), cols == 0 ? 0 : x.numel() / cols, cols, cols,
          1};
}

}  // namespace

RmsForward rms_forward(const Tensor& x, const Tensor& gain, double eps) {
  const Tensor y = at::empty_like(x);
  const int64_t cols = x.size(-1), rows = cols == 0 ? 0 : x.numel() / cols;
  const Tensor r = at::empty({rows}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm", [&] {
    in_pieces(rows, rows_of_piece(rows, cols, groups_of(gain)),
              [&](int64_t, int64_t begin, int64_t end) {
                kernels::rms_norm<scalar_t>(
                    rows_of<const scalar_t>(x).slice(begin, end),
                    rows_of<const scalar_t>(gain), eps,
                    rows_of<scalar_t>(y).slice(begin, end),
                    r.data_ptr<scalar_t>() + begin);
              });
  });
  return {y, r};
}

/// Each piece sums its own rows; the pieces are summed in their order.
RmsGradients rms_backward(const Tensor& x, const Tensor& gain, const Tensor& r,
                          const Tensor& dy) {
  const int64_t rows = r.size(0), cols = gain.size(-1), groups = groups_of(gain);
  const int64_t piece = rows_of_piece(rows, cols, groups);
  const Tensor dx = at::empty_like(x);
  const Tensor sums =
      at::zeros({(rows + piece - 1) / piece, groups, cols}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm", [&] {
    in_pieces(rows, piece, [&](int64_t i, int64_t begin, int64_t end) {
      kernels::rms_norm_gradient<scalar_t>(
          rows_of<const scalar_t>(x).slice(begin, end), rows_of<const scalar_t>(gain),
          r.data_ptr<scalar_t>() + begin, rows_of<const scalar_t>(dy).slice(begin, end),
          {}, rows_of<scalar_t>(dx).slice(begin, end),
          rows_of<scalar_t>(sums).slice(i * groups, (i + 1) * groups));
    });
  });
  const Tensor dgain = at::zeros(gain.sizes(), x.options());
  add_in_order(sums, dgain);
  return {dx, dgain};
}

}  // namespace lagwise::ops
