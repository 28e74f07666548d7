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
/// A piece has several parts for each thread, and whoever is free takes the next: where
/// the system gives a thread no time, the others do its work instead of waiting.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

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
  void serve(int thread);

  const int spins_;
  const uint32_t parts_;             // of a piece
  std::atomic<uint32_t> piece_{0};   // counts pieces of work
  std::atomic<uint64_t> next_{0};    // the piece and, in the low half, its next part
  std::atomic<uint32_t> to_do_{0};   // parts of this piece that are not done
  std::atomic<uint32_t> asleep_{0};  // threads that wait to be woken
  std::atomic<bool> ends_{false};
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace lagwise::runtime
