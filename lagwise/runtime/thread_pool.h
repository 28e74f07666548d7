#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace lagwise::runtime {

/// Threads that share one piece of work after another, each a few microseconds long: a
/// token takes some twenty of them. A thread that finds no work looks for it for a short
/// while, because the next piece nearly always follows at once; then it sleeps.
///
/// A piece has several parts for each thread, which stand side by side: what a part asks
/// memory for in advance is what the thread's next part needs. Whoever is done with its
/// own takes those of others: where the system gives a thread no time, the others do its
/// work instead of waiting.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(queues_.size()); }

  /// Which part of how many is to be done, and by which thread, this one being 0.
  struct Part {
    int index, count, thread;

    /// Its share of so many things: [first, last).
    int64_t first(int64_t things) const { return things * index / count; }
    int64_t last(int64_t things) const { return things * (index + 1) / count; }
  };

  /// Calls work(part) for every part and returns when all are done. `work` must not
  /// throw. Only whoever holds `mutex` may call it.
  template <class Work>
  void run(const Work& work) {
    run_parts([](const void* context,
                 const Part& part) { (*static_cast<const Work*>(context))(part); },
              &work);
  }

  std::mutex mutex;

 private:
  using Call = void (*)(const void* context, const Part& part);
  void run_parts(Call call, const void* context);
  void take_parts(uint32_t piece, int thread);
  void take_parts_of(int owner, uint32_t piece, int thread);
  void serve(int thread);

  const int spins_;
  /// Of the parts of one thread: the piece and, in the low half, the next of its parts.
  struct alignas(64) Queue {
    std::atomic<uint64_t> next{0};
  };
  std::vector<Queue> queues_;        // one a thread
  std::atomic<uint32_t> piece_{0};   // counts pieces of work
  std::atomic<uint32_t> to_do_{0};   // parts of this piece that are not done
  std::atomic<uint32_t> asleep_{0};  // threads that wait to be woken
  std::atomic<bool> ends_{false};
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace lagwise::runtime
