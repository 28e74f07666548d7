#include "lagwise/runtime/thread_pool.h"

#include <algorithm>

namespace lagwise::runtime {
namespace {

constexpr int kSpins = 20000;  // some 50 to 500 microseconds, by processor

void rest_a_moment() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int part = 1; part < threads; ++part)
    workers_.emplace_back([this, part] { serve(part); });
}

ThreadPool::~ThreadPool() {
  ends_ = true;
  piece_.fetch_add(1);
  piece_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_parts(Call call, const void* context) {
  const int parts = threads();
  if (parts == 1) return call(context, 0, 1);
  call_ = call, context_ = context;
  to_do_.store(static_cast<uint32_t>(parts - 1), std::memory_order_relaxed);
  piece_.fetch_add(1);  // in one order with asleep_: a thread sees either the piece
  if (asleep_.load() > 0) piece_.notify_all();  // or, asleep, this call
  call(context, 0, parts);
  for (int spins = 0; to_do_.load(std::memory_order_acquire) > 0;)
    if (++spins < kSpins)
      rest_a_moment();
    else
      std::this_thread::yield();
}

void ThreadPool::serve(int part) {
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; piece_.load(std::memory_order_acquire) == seen;) {
      if (++spins < kSpins) {
        rest_a_moment();
        continue;
      }
      asleep_.fetch_add(1);
      piece_.wait(seen);
      asleep_.fetch_sub(1);
      spins = 0;
    }
    seen = piece_.load(std::memory_order_acquire);
    if (ends_) return;
    call_(context_, part, threads());
    to_do_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace lagwise::runtime
