#include "lagwise/core/machine.h"

#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

namespace lagwise {

int usable_cores() {
  cpu_set_t ours;
  const bool known = sched_getaffinity(0, sizeof(ours), &ours) == 0;
  const int cores = known ? CPU_COUNT(&ours) : int(std::thread::hardware_concurrency());
  return std::max(1, cores);
}

namespace {

/// Takes address space for the heap at once and asks for pages of 2 MB in it: activations
/// are read and written once in a while, and with small pages it takes a good part of that
/// to look up where they are. Memory is taken as it is used, as ever; where the kernel or
/// a limit refuses, pages stay small.
void ask_for_large_pages() {
  constexpr size_t kHeap = size_t{1} << 30, kPage = size_t{2} << 20;
  void* const space = std::malloc(kHeap);
  if (space == nullptr) return;
  void* first_page = space;
  size_t room = kHeap;
  std::align(kPage, kPage, first_page, room);
  madvise(first_page, room / kPage * kPage, MADV_HUGEPAGE);
  std::free(space);  // back to the heap, which keeps it
}

}  // namespace

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  mallopt(M_TOP_PAD, 64 << 20);
  ask_for_large_pages();
}

std::string human_bytes(int64_t bytes) {
  struct Unit {
    double size;
    const char* format;
  };
  constexpr std::array kUnits = {Unit{1e9, "%.2f GB"}, Unit{1e6, "%.1f MB"},
                                 Unit{1e3, "%.0f kB"}, Unit{1, "%.0f B"}};
  const auto unit =
      std::find_if(kUnits.begin(), kUnits.end() - 1,
                   [&](const Unit& unit) { return double(bytes) >= unit.size; });
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), unit->format, double(bytes) / unit->size);
  return text.data();
}

}  // namespace lagwise
