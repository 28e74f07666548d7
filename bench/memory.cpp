#include "bench/memory.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>

namespace lagwise::bench {
namespace {

std::atomic<int64_t> live_bytes = 0;
std::atomic<int64_t> most_bytes = 0;

void count(int64_t bytes) {
  const int64_t live = live_bytes.fetch_add(bytes) + bytes;
  int64_t most = most_bytes.load();
  while (live > most && !most_bytes.compare_exchange_weak(most, live)) {
  }
}

/// A block of the real allocator and its size, which a deleter is not told.
struct Block {
  at::DataPtr data;
  int64_t bytes;
};

void release(void* block) {
  live_bytes -= static_cast<Block*>(block)->bytes;
  delete static_cast<Block*>(block);
}

/// Passes every request on and keeps count. Blocks may outlive its use: their
/// deleter is a plain function.
struct CountingAllocator final : at::Allocator {
  at::Allocator* real = nullptr;

  at::DataPtr allocate(size_t bytes) const override {
    auto* block = new Block{real->allocate(bytes), static_cast<int64_t>(bytes)};
    count(block->bytes);
    return {block->data.get(), block, &release, at::Device(at::kCPU)};
  }
};

/// Stands in for the CPU allocator as long as it lives.
struct Counting {
  at::Allocator* const real = c10::GetCPUAllocator();
  Counting() {
    static CountingAllocator counting;
    counting.real = real;
    c10::SetCPUAllocator(&counting);
  }
  ~Counting() { c10::SetCPUAllocator(real); }
};

}  // namespace

int64_t extra_bytes(const std::function<std::vector<at::Tensor>()>& call) {
  const Counting counting;
  const int64_t before = live_bytes.load();
  most_bytes = before;
  const std::vector<at::Tensor> results = call();
  int64_t extra = most_bytes.load() - before;
  for (const at::Tensor& result : results) {
    extra -= static_cast<int64_t>(result.nbytes());
  }
  return std::max<int64_t>(extra, 0);
}

}  // namespace lagwise::bench
