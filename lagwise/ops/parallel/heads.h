#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::ops {

/// The last two axes of a [B, H, rows, cols] tensor at one batch row and head,
/// where `head` counts over both. Undefined gives an empty view.
template <class T>
MatView<T> head_view(const at::Tensor& x, int64_t head) {
  if (!x.defined()) return {};
  const int64_t b = head / x.size(1), h = head % x.size(1);
  auto* data = static_cast<T*>(x.data_ptr()) + b * x.stride(0) + h * x.stride(1);
  return {data, x.size(2), x.size(3), x.stride(2), x.stride(3)};
}

/// A [B, H, n] tensor at one head, as a column.
template <class T>
MatView<T> head_column(const at::Tensor& x, int64_t head) {
  if (!x.defined()) return {};
  const int64_t b = head / x.size(1), h = head % x.size(1);
  auto* data = static_cast<T*>(x.data_ptr()) + b * x.stride(0) + h * x.stride(1);
  return {data, x.size(2), 1, x.stride(2), 1};
}

/// A strip of columns of one head: the unit of work a thread takes.
struct Strip {
  int64_t head;
  int64_t begin, end;  ///< columns
  bool first() const { return begin == 0; }
};

/// Strips begin at multiples of this: a panel on the widest SIMD target.
inline constexpr int64_t kStripStep = 32;

/// How many strips to cut a head into so that the heads fill the threads. Any
/// number gives the same bits, since columns never meet in the arithmetic.
inline int64_t strips_per_head(int64_t heads, int64_t columns) {
  const int64_t threads = at::get_num_threads();
  if (heads == 0 || heads % threads == 0 || heads >= 4 * threads) return 1;
  return std::max<int64_t>(1, std::min(threads, columns / kStripStep));
}

/// Calls fn(task, scratch) for every task, in parallel. Each thread has `scratch`
/// numbers of its own, allocated here once. Threads take the next task when they are
/// free: a core that others disturb then does less.
template <class T, class Fn>
void for_each_task(int64_t tasks, int64_t scratch, const Fn& fn) {
  constexpr int64_t kLine = 64 / sizeof(T);
  scratch = (scratch + kLine - 1) / kLine * kLine;  // no two threads on one cache line
  const int64_t threads = std::min<int64_t>(tasks, at::get_num_threads());
  const at::Tensor space =
      at::empty({threads, scratch}, c10::CppTypeToScalarType<T>::value);
  std::atomic<int64_t> next{0};
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t) {
    T* const own = space.data_ptr<T>() + begin * scratch;
    for (int64_t task; (task = next.fetch_add(1)) < tasks;) fn(task, own);
  });
}

/// Calls fn(strip, scratch) for every strip of every head, in parallel.
template <class T, class Fn>
void for_each_strip(int64_t heads, int64_t columns, int64_t scratch, const Fn& fn) {
  const int64_t strips = strips_per_head(heads, columns);
  const auto cut = [&](int64_t i) {
    return i == strips ? columns : columns * i / strips / kStripStep * kStripStep;
  };
  for_each_task<T>(heads * strips, scratch, [&](int64_t task, T* own) {
    const int64_t i = task % strips;
    fn(Strip{task / strips, cut(i), cut(i + 1)}, own);
  });
}

}  // namespace lagwise::ops
