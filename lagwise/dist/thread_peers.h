#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/stack.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lagwise/ops/peers.h"

namespace lagwise::dist {

/// Letter boxes between the threads of one process: one for each ordered pair.
class LetterBoxes {
 public:
  explicit LetterBoxes(int size)
      : size_(size), boxes_(static_cast<size_t>(size) * static_cast<size_t>(size)) {}
  int size() const { return size_; }

  void put(int from, int to, at::Tensor x) {
    const std::lock_guard hold(mutex_);
    box(from, to).push_back(std::move(x));
    arrived_.notify_all();
  }

  /// Waits for the next letter. Once somebody has failed, nobody waits any more.
  at::Tensor take(int from, int to) {
    std::unique_lock hold(mutex_);
    arrived_.wait(hold, [&] { return !box(from, to).empty() || failed_; });
    if (box(from, to).empty())
      throw std::runtime_error("rank " + std::to_string(to) + ": a peer has failed");
    at::Tensor x = std::move(box(from, to).front());
    box(from, to).pop_front();
    return x;
  }

  void fail() {
    const std::lock_guard hold(mutex_);
    failed_ = true;
    arrived_.notify_all();
  }

 private:
  std::deque<at::Tensor>& box(int from, int to) {
    return boxes_[static_cast<size_t>(int64_t{from} * size_ + to)];
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::deque<at::Tensor>> boxes_;
  bool failed_ = false;
};

/// Peers that are threads of this process: what is written for processes on many machines
/// can be tested without a network. Counts the bytes that it gives to others, so that
/// tests can say what an exchange costs.
class ThreadPeers : public ops::Peers {
 public:
  ThreadPeers(std::shared_ptr<LetterBoxes> boxes, int rank)
      : boxes_(std::move(boxes)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return boxes_->size(); }

  at::Tensor gather(const at::Tensor& x) const override {
    for (int other = 0; other < size(); ++other) give(x, other);
    std::vector<at::Tensor> all;
    all.reserve(static_cast<size_t>(size()));
    for (int other = 0; other < size(); ++other) all.push_back(receive(x, other));
    return at::stack(all);
  }

  at::Tensor exchange(const at::Tensor& x, int other) const override {
    give(x, other);
    return receive(x, other);
  }

  void broadcast_(at::Tensor& x, int from) const override {
    if (rank_ == from)
      for (int other = 0; other < size(); ++other) give(x, other);
    x.copy_(receive(x, from));
  }

  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  void give(const at::Tensor& x, int other) const {
    if (other != rank_) bytes_sent_ += static_cast<int64_t>(x.nbytes());
    boxes_->put(rank_, other, x.detach().clone());
  }

  /// What `other` gave, which must look like x.
  at::Tensor receive(const at::Tensor& x, int other) const {
    at::Tensor got = boxes_->take(other, rank_);
    if (got.sizes() != x.sizes() || got.scalar_type() != x.scalar_type())
      throw std::invalid_argument("rank " + std::to_string(rank_) +
                                  ": expected tensors of the same sizes and type, got "
                                  "another of rank " +
                                  std::to_string(other));
    return got;
  }

  std::shared_ptr<LetterBoxes> boxes_;
  int rank_;
  mutable int64_t bytes_sent_ = 0;
};

/// Runs act(peers) in `size` threads, one for each rank, and waits for all of them. The
/// failure of one ends the waiting of the others and is thrown here.
inline void run_together(int size, const std::function<void(const ThreadPeers&)>& act) {
  const auto boxes = std::make_shared<LetterBoxes>(size);
  std::exception_ptr first;
  std::mutex first_mutex;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        act(ThreadPeers(boxes, rank));
      } catch (...) {
        const std::lock_guard hold(first_mutex);
        if (!first) first = std::current_exception();
        boxes->fail();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace lagwise::dist
