#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <limits>
#include <vector>

#include "lagwise/ops/testing/linear_problem.h"

/// Test support: the same numbers in different memory layouts. Whatever lies
/// between the numbers is NaN, so that reading it shows.
namespace lagwise::ops::testing {

enum class Layout {
  contiguous,
  rows_first,
  padded,
  expanded,
  inner_step,
  strided_grads
};
inline constexpr const char* kLayoutNames[] = {"contiguous", "rows_first", "padded",
                                               "expanded",   "inner_step", "grads"};

inline at::Tensor full_of_nan(at::IntArrayRef shape, const at::Tensor& like) {
  return at::full(shape, std::numeric_limits<double>::quiet_NaN(), like.options());
}

/// [B, H, N, D] in the memory of [B, N, H, D], as a projection leaves it.
inline at::Tensor rows_first(const at::Tensor& t) {
  if (t.dim() < 3) return t.contiguous();
  return t.transpose(1, 2).contiguous().transpose(1, 2);
}

/// A window into a tensor that is larger along every axis.
inline at::Tensor padded(const at::Tensor& t) {
  std::vector<int64_t> outer = t.sizes().vec();
  for (int64_t& size : outer) size += 3;
  at::Tensor window = full_of_nan(outer, t);
  for (int64_t axis = 0; axis < t.dim(); ++axis) {
    window = window.narrow(axis, 1, t.size(axis));
  }
  return window.copy_(t);
}

/// Every second number of the last axis.
inline at::Tensor inner_step(const at::Tensor& t) {
  std::vector<int64_t> outer = t.sizes().vec();
  outer.back() *= 2;
  return full_of_nan(outer, t).slice(-1, 0, outer.back(), 2).copy_(t);
}

/// The last two axes swapped in memory: the step between neighbours of a row is
/// the number of rows.
inline at::Tensor columns_first(const at::Tensor& t) {
  if (t.dim() < 2) return inner_step(t);
  return t.transpose(-1, -2).contiguous().transpose(-1, -2);
}

/// Slice 0 of an axis, shown at every place of it with stride 0.
inline at::Tensor expanded(const at::Tensor& t, int64_t axis) {
  if (t.size(axis) == 0) return t;
  return t.narrow(axis, 0, 1).contiguous().expand(t.sizes());
}

inline Problem lay_out(Problem p, Layout layout) {
  switch (layout) {
    case Layout::contiguous:
      return p;
    case Layout::rows_first:
      return map_tensors(p, rows_first);
    case Layout::padded:
      return map_tensors(p, padded);
    case Layout::inner_step:
      return map_tensors(p, inner_step);
    case Layout::strided_grads:
      for (at::Tensor* grad : {&p.grad_out, &p.grad_s, &p.grad_z}) {
        *grad = columns_first(*grad);
      }
      return p;
    case Layout::expanded:
      // Keys and values shared by all heads, one set of queries and one initial
      // state for the whole batch, and a gradient as sum() sends it.
      for (at::Tensor* t : {&p.k, &p.v}) *t = expanded(*t, 1);
      if (p.options.k_norm.defined()) p.options.k_norm = expanded(p.options.k_norm, 1);
      p.q = expanded(p.q, 0);
      if (p.from.s.defined()) p.from.s = expanded(p.from.s, 0);
      p.grad_out = expanded(expanded(p.grad_out, 3), 2);
      return p;
  }
  return p;
}

}  // namespace lagwise::ops::testing
