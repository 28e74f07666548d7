#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include "lagwise/ops/encoded.h"

namespace lagwise {

/// The keys and values of all tokens so far, for decoding with exact attention. Unlike
/// the state of linear attention it grows with every token, and a step reads all of it.
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

  int64_t length() const { return length_; }
  at::Tensor keys() const;    ///< [B, H, length, D], a view
  at::Tensor values() const;  ///< [B, H, length, E], a view

  /// One token: x.q [B, H, 1, D] attends to all keys, with the scale and the tables by
  /// lag of x (x.k is ignored). Returns [B, H, 1, E].
  at::Tensor step(const Encoded& encoded, c10::optional<int64_t> window = {}) const;

 private:
  void reserve(int64_t length, const at::Tensor& k, const at::Tensor& v);

  at::ScalarType storage_;
  at::Tensor k_, v_;  ///< [B, H, capacity, D], [B, H, capacity, E]
  int64_t length_ = 0;
};

}  // namespace lagwise
