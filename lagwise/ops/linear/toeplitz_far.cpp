#include "lagwise/ops/linear/toeplitz_far.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace lagwise::ops {
namespace {

using at::Tensor;

/// A row that reads no weight within exp(-this) of the largest is far: the others lose
/// three bits to the transform at most.
constexpr double kSpread = 2;
/// Finite, also for a bias that hides everything.
constexpr double kLowest = -1e30;

/// The largest of x[i, i + m) for every i.
std::vector<double> sliding_max(const Tensor& x, int64_t m) {
  const Tensor numbers = x.to(at::kDouble).contiguous();
  const double* const at = numbers.data_ptr<double>();
  std::vector<double> largest;
  std::deque<int64_t> falling;  // places of those that may be the largest of a window
  for (int64_t c = 0; c < numbers.numel(); ++c) {
    while (!falling.empty() && !(at[falling.back()] > at[c])) falling.pop_back();
    falling.push_back(c);
    if (falling.front() <= c - m) falling.pop_front();
    if (c >= m - 1) largest.push_back(std::max(at[falling.front()], kLowest));
  }
  return largest;
}

/// Some of the far rows: their weights exp(bias - top) and products q . k, [F, M].
struct FarBlock {
  Tensor q;              // [D, F]
  Tensor t, weights;     // [F, M]: without and with the products
  int64_t begin, count;  // among the far rows
  Tensor rows;           // [F]
};

template <class Fn>
void for_each_block(const FarRows& far, const Tensor& bias, const Tensor& q,
                    const Tensor& k, const Fn& fn) {
  const int64_t all = far.rows.numel(), m = k.size(1);
  const int64_t step = std::max<int64_t>(1, (int64_t{1} << 20) / m);  // about 8 MB
  const Tensor windows = bias.unfold(0, m, 1);  // [N, M], keys backwards
  for (int64_t begin = 0; begin < all; begin += step) {
    FarBlock b;
    b.begin = begin, b.count = std::min(step, all - begin);
    b.rows = far.rows.narrow(0, begin, b.count);
    b.q = q.index_select(1, b.rows);
    b.t = at::exp(windows.index_select(0, b.rows).flip({1}) -
                  far.top.narrow(0, begin, b.count));
    b.weights = b.t * at::matmul(b.q.t(), k);
    fn(b);
  }
}

}  // namespace

FarRows::FarRows(const Tensor& bias, int64_t m) {
  const std::vector<double> largest = sliding_max(bias, m);
  const double most = *std::max_element(largest.begin(), largest.end());
  std::vector<int64_t> which;
  std::vector<double> tops;
  for (size_t i = 0; i < largest.size(); ++i)
    if (largest[i] < most - kSpread)
      which.push_back(static_cast<int64_t>(i)), tops.push_back(largest[i]);
  rows = at::tensor(which, at::kLong);
  top = at::tensor(tops, bias.options()).unsqueeze(1);
}

Tensor far_sums(const FarRows& far, const Tensor& bias, const Tensor& q,
                const Tensor& k, const Tensor& w) {
  Tensor sums = at::empty({w.size(0), far.rows.numel()}, q.options());
  for_each_block(far, bias, q, k, [&](const FarBlock& b) {
    sums.narrow(1, b.begin, b.count).copy_(at::matmul(w, b.weights.t()));
  });
  return sums;
}

void far_gradient(const FarRows& far, const Tensor& bias, const Tensor& q,
                  const Tensor& k, const Tensor& w, const Tensor& g, const Tensor& dq,
                  const Tensor& dk, const Tensor& dw, const Tensor& d_bias) {
  const Tensor place = at::arange(k.size(1), at::kLong);
  for_each_block(far, bias, q, k, [&](const FarBlock& b) {
    const Tensor rows = g.narrow(1, b.begin, b.count);
    const Tensor d_weights = at::matmul(rows.t(), w), d_products = d_weights * b.t;
    dq.index_copy_(1, b.rows, at::matmul(k, d_products.t()));
    dk.add_(at::matmul(b.q, d_products));
    dw.add_(at::matmul(rows, b.weights));
    d_bias.index_add_(0, (b.rows.unsqueeze(1) + place).reshape({-1}),
                      (d_weights * b.weights).flip({1}).reshape({-1}));
  });
}

}  // namespace lagwise::ops
