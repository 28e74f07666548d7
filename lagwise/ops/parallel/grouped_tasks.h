#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "lagwise/ops/parallel/heads.h"

namespace lagwise::ops {

/// Calls fn(group, task, scratch) for every task < counts[group] of every group, in
/// parallel. Threads begin at different groups and stay with one while it lasts, then
/// help with the others: what the tasks of a group read is in the cache of one core.
/// Two cores that read the same lines at the same time fetch them from each other,
/// which is slower than from memory that both have left.
template <class T, class Fn>
void for_each_grouped_task(const std::vector<int64_t>& counts, int64_t scratch,
                           const Fn& fn) {
  const auto groups = static_cast<int64_t>(counts.size());
  const int64_t threads = at::get_num_threads();
  std::vector<std::atomic<int64_t>> next(counts.size());
  for_each_task<T>(threads, scratch, [&](int64_t thread, T* own) {
    for (int64_t i = 0; i < groups; ++i) {
      const auto group = static_cast<size_t>((i + thread * groups / threads) % groups);
      for (int64_t task; (task = next[group].fetch_add(1)) < counts[group];)
        fn(static_cast<int64_t>(group), task, own);
    }
  });
}

}  // namespace lagwise::ops
