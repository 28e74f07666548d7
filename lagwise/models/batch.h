#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lagwise/ops/peers.h"

namespace lagwise {

/// What a model is trained or judged on. Every field a task does not need is
/// undefined. Tokens are int64; targets of -1 do not count.
struct Batch {
  at::Tensor tokens;          ///< [B, N]
  at::Tensor lengths;         ///< [B]: real tokens of each row; undefined: all
  at::Tensor targets;         ///< [B, N] next tokens, or [B] classes
  at::Tensor source;          ///< [B, M] of an encoder_decoder, or the second text of a
  at::Tensor source_lengths;  ///<   dual encoder

  // Where this is a part of a larger batch (models/shard.h).
  int64_t first_row = 0;              ///< the number of row 0 in it
  int64_t start = 0;                  ///< the position of column 0 in it
  const ops::Peers* peers = nullptr;  ///< who have the other columns; nullptr: nobody

  bool is_shared() const { return peers != nullptr && peers->size() > 1; }
  bool is_first() const { return !is_shared() || peers->rank() == 0; }
};

/// The sum of losses in nats over `count` targets, and how many were guessed right.
struct Loss {
  at::Tensor sum;        ///< scalar, with a gradient
  at::Tensor by_target;  ///< [B, N] or [B], detached; 0 where a target is -1
  int64_t count = 0, right = 0;
};

/// Of logits [.., V] against targets [..].
Loss cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace lagwise
