#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lagwise::bench {

/// What one rank sends in one training step of a layer whose rows are shared out among
/// `ranks` (train.sequence_ranks), gradients of parameters left out.
struct SequenceTraffic {
  int64_t n = 0;  ///< tokens of a row
  int ranks = 0;
  int64_t bytes_per_step = 0;  ///< for each layer
};

/// A decoder with linear attention and a decay, 2 heads of 16, forwards and backwards, on
/// one row of n tokens, between threads that count.
SequenceTraffic sequence_traffic(int64_t n, int ranks);

}  // namespace lagwise::bench
