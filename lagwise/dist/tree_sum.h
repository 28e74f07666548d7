#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lagwise/ops/peers.h"

namespace lagwise::dist {

/// A sum whose order is fixed by its number of terms, not by who computes which.
///
/// Terms 0 .. L - 1, L a power of two, are the leaves of a binary tree, and every inner
/// node is the sum of its two children:
///
///     ((t0 + t1) + (t2 + t3)) + ((t4 + t5) + (t6 + t7))
///
/// Of W processes, W a power of two that divides L, rank r has the terms of one whole
/// subtree, r L / W and those after it. It walks them like a binary counter: a new term is
/// a tree of one leaf, and two trees of the same size become one twice as large, so there
/// are never more than log2(L / W) + 1 tensors. The upper levels are recursive doubling: in
/// round i ranks that differ in bit i exchange their sums and both add them, and since
/// a + b = b + a in floating point too, both have the same bits. So 1, 2 and 4 processes
/// have the same sum to the last bit.
class TreeSum {
 public:
  /// The next term, which is ours from here on: it may be added to in place.
  void add(at::Tensor term);

  /// The sum over the terms of all peers (nullptr: ours are all). Everybody must have
  /// added as many, a power of two. The sum starts anew afterwards.
  at::Tensor total(const ops::Peers* peers);

 private:
  struct Tree {
    int64_t leaves = 0;
    at::Tensor sum;
  };
  std::vector<Tree> trees_;  // of falling sizes
};

/// Adds what all peers have, the upper levels of the tree, into `sum`: contiguous. Large
/// tensors go piece by piece, so that little memory is needed besides.
void sum_over_peers_(at::Tensor& sum, const ops::Peers& peers);

inline bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace lagwise::dist
