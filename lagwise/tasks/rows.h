#pragma once

#include <cstdint>

namespace lagwise {

/// Rows [begin, end) of the batch of a micro-step. A row is a function of its number and
/// of the leaf it belongs to, so that whoever makes a part of the batch, here or on
/// another machine, makes the same rows.
struct Rows {
  Rows(int64_t count) : end(count) {}  // NOLINT: train_batch(step, 0, 16) reads well
  Rows(int64_t first, int64_t last, int64_t of_leaf = 0, int64_t of_leaves = 1)
      : begin(first), end(last), leaf(of_leaf), leaves(of_leaves) {}

  int64_t begin = 0, end = 0;
  int64_t leaf = 0;    ///< which of the slices of a batch this is
  int64_t leaves = 1;  ///< how many it is cut into (train.leaves)
};

}  // namespace lagwise
