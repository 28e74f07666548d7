#pragma once

namespace lagwise::ops {

/// Whether operators which the calling thread records from now on keep less for their
/// backward pass than they have, and compute it anew there: less memory for more time.
/// feed_forward does, and linear attention over ranks (attention/shared_state.h).
bool recomputes();

/// Sets it while it lives.
class WithRecompute {
 public:
  explicit WithRecompute(bool on);
  ~WithRecompute();
  WithRecompute(const WithRecompute&) = delete;
  WithRecompute& operator=(const WithRecompute&) = delete;

 private:
  bool before_;
};

}  // namespace lagwise::ops
