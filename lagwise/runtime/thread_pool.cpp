#include "lagwise/runtime/thread_pool.h"

namespace lagwise::runtime {
namespace {

/// How often to look for work before sleeping: for some 50 to 500 microseconds, by
/// processor; hardly at all where the others need the core.
int spins_for(int threads) {
  return threads <= static_cast<int>(std::thread::hardware_concurrency()) ? 20000 : 10;
}

void rest_a_moment() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) : spins_(spins_for(threads)) {
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
    if (++spins < spins_)
      rest_a_moment();
    else
      std::this_thread::yield();
}

void ThreadPool::serve(int part) {
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; piece_.load(std::memory_order_acquire) == seen;) {
      if (++spins < spins_) {
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
