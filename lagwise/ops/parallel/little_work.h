#pragma once

#include <cstdint>

#include "lagwise/ops/parallel/heads.h"

namespace lagwise::ops {

/// A call with fewer multiply-adds than this, about 0.1 ms, runs on one thread. Waking
/// another would take as long; and where the cores have other work, waiting for it
/// several times a token would take most of the time of generating.
inline constexpr int64_t kLittleWork = 1 << 20;

/// Calls fn(task, scratch) for every task: in parallel, unless there is little `work`.
template <class T, class Fn>
void for_each_task_of(int64_t work, int64_t tasks, int64_t scratch, const Fn& fn) {
  if (work > kLittleWork) return for_each_task<T>(tasks, scratch, fn);
  const at::Tensor own = at::empty({scratch}, c10::CppTypeToScalarType<T>::value);
  for (int64_t task = 0; task < tasks; ++task) fn(task, own.data_ptr<T>());
}

}  // namespace lagwise::ops
