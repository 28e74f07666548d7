#pragma once

#include <cstdint>

#include "lagwise/ops/heads.h"

namespace lagwise::ops {

/// Multiply-adds, of all tasks together, that one thread does alone: about 0.1 ms. Less
/// is not worth waking another for; and where the cores have other work, waiting for it
/// several times in every token that is written takes most of the time.
inline constexpr int64_t kLittleWork = 1 << 20;

/// Calls fn(task, scratch) for every task: in parallel, unless there is little `work`.
template <class T, class Fn>
void for_each_task_of(int64_t work, int64_t tasks, int64_t scratch, const Fn& fn) {
  if (work > kLittleWork) return for_each_task<T>(tasks, scratch, fn);
  const at::Tensor own = at::empty({scratch}, c10::CppTypeToScalarType<T>::value);
  for (int64_t task = 0; task < tasks; ++task) fn(task, own.data_ptr<T>());
}

}  // namespace lagwise::ops
