#include "lagwise/models/shard.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>

#include <stdexcept>
#include <string>

namespace lagwise {

Columns columns_of(int64_t n, int rank, int size, int64_t patch) {
  if (n % patch != 0)
    throw std::invalid_argument("expected whole patches of " + std::to_string(patch) +
                                " tokens, got " + std::to_string(n));
  const int64_t patches = n / patch;
  const auto before = [&](int64_t ranks) { return patches * ranks / size * patch; };
  return {before(rank), before(rank + 1)};
}

Batch shard(const Batch& whole, const Columns& columns, const ops::Peers& peers) {
  const int64_t n = columns.end - columns.begin;
  Batch part = whole;
  part.tokens = whole.tokens.narrow(1, columns.begin, n);
  if (whole.lengths.defined())
    part.lengths = (whole.lengths - columns.begin).clamp(0, n);
  if (whole.targets.defined()) {
    if (whole.targets.dim() == 2)
      part.targets = whole.targets.narrow(1, columns.begin, n);
    else if (peers.rank() != 0)
      part.targets = at::full_like(whole.targets, -1);
  }
  part.start = whole.start + columns.begin;
  part.peers = &peers;
  return part;
}

}  // namespace lagwise
