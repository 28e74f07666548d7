#pragma once

#include <cstdint>

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

/// Bits per second that a process of this machine sends while two of them sum up
/// `numbers` f32 over loopback, as gradients are (dist/tree_sum.h): sending, receiving and
/// adding. No line can make it faster. `port`: a free one.
double own_rate(int64_t numbers, int port);

/// What a step costs where `nodes` share out a batch, each as large as that of the step
/// that was measured: computation and exchange take turns.
struct Scaled {
  int nodes = 0;
  double line = 0;             ///< bits per second
  int64_t bytes_per_step = 0;  ///< that a node sends: 4 P log2(nodes), of gradients
  double exchange = 0;         ///< seconds
  double busy = 0;             ///< the share of time in which nodes compute
};

/// `step`: the seconds of a step of one node by itself; `parameters`: P. The exchange
/// goes at the rate of the line or at our own, whichever is less.
Scaled scaled(double step, int64_t parameters, int nodes, double line, double own);

}  // namespace lagwise::bench
