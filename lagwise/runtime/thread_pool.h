#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace lagwise::runtime {

/// Threads that share one piece of work after another, each a few microseconds long: a
/// token takes some twenty of them. A thread that has done its part spins for a short
/// while, because the next piece nearly always follows at once; then it sleeps.
///
/// Without threads (WebAssembly) it takes one, and calls.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls work(part, parts) for every part from 0 on, part 0 in this thread, and
  /// returns when all are done. `work` must not throw. Only whoever holds `mutex` may
  /// call it.
  template <class Work>
  void run(const Work& work) {
    run_parts([](const void* context, int part,
                 int parts) { (*static_cast<const Work*>(context))(part, parts); },
              &work);
  }

  std::mutex mutex;

 private:
  using Call = void (*)(const void* context, int part, int parts);
  void run_parts(Call call, const void* context);
  void serve(int part);

  std::atomic<uint32_t> piece_{0};   // counts pieces of work
  std::atomic<uint32_t> to_do_{0};   // parts of this piece that are not done
  std::atomic<uint32_t> asleep_{0};  // threads that wait to be woken
  std::atomic<bool> ends_{false};
  int spins_;
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace lagwise::runtime
