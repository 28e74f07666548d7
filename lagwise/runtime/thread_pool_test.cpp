#include "lagwise/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace lagwise::runtime {
namespace {

TEST(ThreadPool, DoesEveryPartOfEveryPieceOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> done(static_cast<size_t>(threads));
    constexpr int kPieces = 300;
    for (int piece = 0; piece < kPieces; ++piece)
      pool.run([&](int part, int parts) {
        EXPECT_EQ(parts, threads);
        ++done[static_cast<size_t>(part)];
      });
    EXPECT_EQ(std::accumulate(done.begin(), done.end(), 0), kPieces * threads);
    for (const int each : done) EXPECT_EQ(each, kPieces);
  }
}

TEST(ThreadPool, WakesThreadsThatHaveGoneToSleep) {
  ThreadPool pool(2);
  for (int piece = 0; piece < 5; ++piece) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> parts_done = 0;
    pool.run([&](int, int) { ++parts_done; });
    EXPECT_EQ(parts_done, 2);
  }
}

TEST(ThreadPool, EndsWithoutHavingWorked) { const ThreadPool pool(3); }

}  // namespace
}  // namespace lagwise::runtime
