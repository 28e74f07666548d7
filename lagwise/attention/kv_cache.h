#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/encoded.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise {

/// The keys and values of all tokens so far, for decoding with exact attention. Unlike
/// the state of linear attention it grows with every token, and a step reads all of it;
/// under a window it is told to keep the last ones alone, and stops growing.
///
/// Keys come encoded at their own position (Encoded::k) and are never touched again.
/// Score-side encodings need nothing in the cache: their tables by lag come with the
/// step.
class KeyValueCache {
 public:
  /// `storage`: Float, Double, or BFloat16, which halves memory and time of a step.
  explicit KeyValueCache(at::ScalarType storage = at::kFloat);

  /// k [B, H, n, D], v [B, H, n, E], n >= 0: any split of the tokens gives the same
  /// cache. Memory doubles when it is full.
  void append(const at::Tensor& k, const at::Tensor& v);

  /// Forgets all but the last `rows` tokens.
  void keep_last(int64_t rows);

  /// The same rows in memory of its own: what is appended to one, the other lacks.
  KeyValueCache copied() const;

  /// Sequence b becomes what sequence order[b] was, int64 [B].
  void reorder(const at::Tensor& order);

  int64_t length() const { return length_; }           ///< tokens kept
  int64_t seen() const { return dropped_ + length_; }  ///< and forgotten ones
  at::Tensor keys() const;                             ///< [B, H, length, D], a view
  at::Tensor values() const;                           ///< [B, H, length, E], a view

  /// One token: x.q [B, H, 1, D] attends to all keys, with the scale and the tables by
  /// lag of x (x.k is ignored). key_bias [B, H, length] is added to the scores of a key.
  /// Returns [B, H, 1, E].
  at::Tensor step(const Encoded& encoded, ops::Optional<int64_t> window = {},
                  const at::Tensor& key_bias = {}) const;

 private:
  void reserve(int64_t more, const at::Tensor& k, const at::Tensor& v);

  at::ScalarType storage_;
  at::Tensor k_, v_;                ///< [B, H, capacity, D], [B, H, capacity, E]
  int64_t first_ = 0, length_ = 0;  ///< rows of the buffers in use
  int64_t dropped_ = 0;
};

}  // namespace lagwise
