#include "lagwise/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lagwise::runtime {
namespace {

TEST(ThreadPool, DoesEveryPartOfEveryPieceOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    constexpr int64_t kThings = 100, kPieces = 300;
    std::vector<int> done(kThings);
    for (int64_t piece = 0; piece < kPieces; ++piece)
      pool.run([&](const ThreadPool::Part& part) {
        EXPECT_LT(part.thread, threads);
        const int64_t last = part.last(kThings);
        for (int64_t i = part.first(kThings); i < last; ++i)
          ++done[static_cast<size_t>(i)];
      });
    for (const int each : done) EXPECT_EQ(each, kPieces);
  }
}

TEST(ThreadPool, WakesThreadsThatHaveGoneToSleep) {
  ThreadPool pool(2);
  for (int piece = 0; piece < 5; ++piece) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> parts_done = 0;
    int parts = 0;
    pool.run([&](const ThreadPool::Part& part) {
      if (part.index == 0) parts = part.count;
      ++parts_done;
    });
    EXPECT_EQ(parts_done, parts);
  }
}

TEST(ThreadPool, EndsWithoutHavingWorked) {
  const ThreadPool pool(3);
  EXPECT_EQ(pool.threads(), 3);  // its end waits for all of them
}

}  // namespace
}  // namespace lagwise::runtime
