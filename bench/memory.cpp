#include "bench/memory.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <torch/csrc/api/include/torch/version.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

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

/// Blocks of the real allocator by address, with their sizes, which a deleter is not
/// told. (A context of its own would do, but raw_allocate, which oneDNN uses, wants the
/// address itself as context.)
struct Block {
  at::DataPtr data;
  int64_t bytes;
};
std::mutex blocks_mutex;
std::unordered_map<void*, Block>& blocks() {
  static auto& all = *new std::unordered_map<void*, Block>();  // outlives every tensor
  return all;
}

void release(void* address) {
  if (address == nullptr) return;
  const std::lock_guard lock(blocks_mutex);
  const auto block = blocks().find(address);
  live_bytes -= block->second.bytes;
  blocks().erase(block);
}

/// Passes every request on and keeps count. Blocks may outlive its use: their
/// deleter is a plain function.
struct CountingAllocator final : at::Allocator {
  at::Allocator* real = nullptr;

#if TORCH_VERSION_MAJOR >= 2
  at::DataPtr allocate(size_t bytes) override { return counted(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
#else
  at::DataPtr allocate(size_t bytes) const override { return counted(bytes); }
#endif
  at::DeleterFnPtr raw_deleter() const override { return &release; }

  at::DataPtr counted(size_t bytes) const {
    at::DataPtr data = real->allocate(bytes);
    void* const address = data.get();
    if (address != nullptr) {
      const std::lock_guard lock(blocks_mutex);
      blocks().emplace(address, Block{std::move(data), static_cast<int64_t>(bytes)});
      count(static_cast<int64_t>(bytes));
    }
    return {address, address, &release, at::Device(at::kCPU)};
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

int64_t free_bytes() {
  malloc_trim(0);
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (int64_t kib = 0; file >> key >> kib; std::getline(file, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return INT64_MAX;
}

}  // namespace lagwise::bench
