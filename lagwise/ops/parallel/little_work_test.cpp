#include "lagwise/ops/parallel/little_work.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace lagwise::ops {
namespace {

TEST(LittleWork, IsDoneOnceAndWhollyLikeMuch) {
  for (const int64_t work : {int64_t{0}, kLittleWork, kLittleWork + 1})
    for (const int64_t tasks : {0, 1, 7, 100}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(tasks));
      for_each_task_of<float>(work, tasks, 3, [&](int64_t task, float*) {
        ++done[static_cast<size_t>(task)];
      });
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
}

TEST(LittleWork, WakesNoOtherThread) {
  const int before = omp_get_max_threads();
  at::get_num_threads();
  omp_set_num_threads(4);
  const auto threads_of = [](int64_t work) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> arrived = 0;
    for_each_task_of<double>(work, 4, 1, [&](int64_t, double*) {
      // Where others may come, the first waits for them: none takes all tasks.
      ++arrived;
      while (work > kLittleWork && arrived < 4) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    return seen.size();
  };
  EXPECT_EQ(threads_of(kLittleWork), 1U);
  EXPECT_EQ(threads_of(kLittleWork + 1), 4U);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace lagwise::ops
