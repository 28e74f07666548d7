#include "lagwise/runtime/thread_pool.h"

namespace lagwise::runtime {
namespace {

constexpr uint32_t kPartsEach = 4;

/// How often to look before giving up the core: for 10 to 50 microseconds, by processor;
/// hardly at all where there are more threads than cores.
int spins_for(int threads) {
  return threads <= static_cast<int>(std::thread::hardware_concurrency()) ? 1000 : 10;
}

void rest_a_moment() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : spins_(spins_for(threads)), queues_(static_cast<size_t>(threads)) {
  for (int thread = 1; thread < threads; ++thread)
    workers_.emplace_back([this, thread] { serve(thread); });
}

ThreadPool::~ThreadPool() {
  ends_ = true;
  piece_.fetch_add(1);
  piece_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_parts(Call call, const void* context) {
  if (workers_.empty()) return call(context, {0, 1, 0});
  const uint32_t piece = piece_.load(std::memory_order_relaxed) + 1;
  call_ = call, context_ = context;
  to_do_.store(kPartsEach * static_cast<uint32_t>(queues_.size()),
               std::memory_order_relaxed);
  for (Queue& queue : queues_) queue.next.store(uint64_t{piece} << 32);
  piece_.store(piece);  // in one order with asleep_: a thread sees either the piece
  if (asleep_.load() > 0) piece_.notify_all();  // or, asleep, this call
  take_parts(piece, 0);
  for (int spins = 0; to_do_.load(std::memory_order_acquire) > 0;)
    if (++spins < spins_)
      rest_a_moment();
    else
      std::this_thread::yield();
}

/// First those of the thread itself.
void ThreadPool::take_parts(uint32_t piece, int thread) {
  for (int i = 0; i < threads(); ++i)
    take_parts_of((thread + i) % threads(), piece, thread);
}

/// Whoever moves `next` on owns the part it named. Until that is done the piece is not, so
/// call_ and context_ are those of the piece.
void ThreadPool::take_parts_of(int owner, uint32_t piece, int thread) {
  std::atomic<uint64_t>& place = queues_[static_cast<size_t>(owner)].next;
  uint64_t next = place.load(std::memory_order_acquire);
  while (next >> 32 == piece && static_cast<uint32_t>(next) < kPartsEach) {
    if (!place.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel))
      continue;
    const uint32_t part =
        static_cast<uint32_t>(owner) * kPartsEach + static_cast<uint32_t>(next);
    call_(context_,
          {static_cast<int>(part), static_cast<int>(kPartsEach) * threads(), thread});
    to_do_.fetch_sub(1, std::memory_order_release);
    next = place.load(std::memory_order_acquire);
  }
}

void ThreadPool::serve(int thread) {
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
    take_parts(seen, thread);
  }
}

}  // namespace lagwise::runtime
