#pragma once

#include <cstdint>

namespace lagwise::kernels {

/// Hands out pieces of a caller's buffer one after another, each from a multiple of 16
/// numbers on. Over a null buffer it only counts: so a kernel's pieces and the size of
/// the scratch it asks for come from one list.
template <class T>
class Scratch {
 public:
  explicit Scratch(T* memory) : memory_(memory) {}

  /// [count]; null where the piece is not wanted, or where there is no buffer.
  T* take(int64_t count, bool wanted = true) {
    if (!wanted) return nullptr;
    T* const piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (count + 15) / 16 * 16;
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  T* memory_;
  int64_t used_ = 0;
};

}  // namespace lagwise::kernels
