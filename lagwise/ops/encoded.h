#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lagwise/core/noise.h"
#include "lagwise/core/noise_streams.h"  // for all who draw

namespace lagwise {

/// What passes between positions and attention. Encodings produce it, attention
/// consumes it, and neither knows the other. Undefined tensors mean "none".

/// Where the rows of one call stand. A lag is query position minus key position.
struct Placement {
  int64_t query_start = 0;   ///< row i stands at start + i,
  int64_t key_start = 0;     ///<   unless positions are given:
  at::Tensor query_at = {};  ///< int64 [N] or [B, N], or [.., dims] on a grid;
  at::Tensor key_at = {};    ///<   encodings by lag refuse these
  bool causal = true;        ///< a query sees the keys at its own position and before
  std::vector<int64_t> grid = {};  ///< empty: a line; {32, 32}: an image, by rows
  int64_t off_grid = 0;            ///< leading rows without a position (a CLS token)
  int64_t horizon = 0;  ///< a fixed longest position, for those that need one
};

/// Queries and keys with their positions in them, or beside them.
struct Encoded {
  at::Tensor q;                ///< [B, H, N, D']
  at::Tensor k;                ///< [B, H, M, D']
  double scale = 1;            ///< of q.k and lag_keys in exact attention
  at::Tensor lag_bias = {};    ///< [H, N+M-1], added after the scale: row i, key j
                               ///<   at column (i - j) + (M - 1)
  at::Tensor lag_keys = {};    ///< [1|H, N+M-1, D'], inside the scale
  at::Tensor lag_values = {};  ///< [1|H, N+M-1, E]
  at::Tensor decay = {};       ///< [H] or [H, D'], log of the factor per step. Where
};                             ///<   lag_bias is set too they are one kernel: causal
                               ///<   linear attention reads decay, all others lag_bias

/// What a feature map made of queries or keys: the feature is x exp(log_scale).
struct Features {
  at::Tensor x = {};          ///< [B, H, N, F]
  at::Tensor log_scale = {};  ///< [B, H, N]; undefined: 0
};

/// A moment at which random numbers are drawn. Training draws anew each step;
/// evaluation and generation keep the moment, so a saved seed and step bring back
/// every number.
struct Draw {
  uint64_t seed = 0;
  int64_t step = 0, micro_step = 0;
  std::map<std::string, at::Tensor> given = {};  ///< numbers to use instead, by name

  /// The noise for one purpose: `stream` is one of the numbers below.
  Noise noise(int64_t stream) const { return Noise(seed, stream, step, micro_step); }
};

}  // namespace lagwise
