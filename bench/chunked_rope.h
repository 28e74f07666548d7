#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lagwise::bench {

/// Causal linear attention with RoPE (interleaved) and a fixed decay per head (ALiBi's
/// slopes), in chunks of 64 rows of plain ATen, differentiable by autograd: what
/// somebody who knows the chunked form well would write.
///
/// With g the factor of a head for one step, R_p the rotation of position p, and row i
/// of chunk a and row j of chunk b:
///
///     o_(a,i) = sum over (b,j) <= (a,i) of  g^(64 (a-b) + i-j) <R q_(a,i), R k_(b,j)> v_(b,j)
///
/// The power splits into g^(i-32) for the query, g^(32-j) for the key and g^(64 (a-b))
/// for the chunks. The first two are multiplied into the tables of cosines and sines,
/// which are made once: then the decay costs nothing within a chunk. It is written as
///
///     q' = g^(i-32) R q,  k' = g^(32-j) R k       a complex product each
///     o  = tril(q' k'^T) v + q' S_a               products of all chunks at once
///     S_(a+1) = g^64 (S_a + k'^T v)               chunk after chunk
class ChunkedRope {
 public:
  static constexpr int64_t kRowsOfChunk = 64;

  /// Tables for sequences of n rows, which must be a multiple of 64 or less than 64.
  ChunkedRope(int64_t n, int64_t heads, int64_t dim, at::ScalarType type);

  int64_t length() const { return chunks_ * rows_; }

  /// qkv [B N, 3 H D]: queries of all heads, then keys, then values -> [B, N, H, D], as
  /// a view of memory in the order B, H, N, D.
  at::Tensor attend(const at::Tensor& qkv) const;

 private:
  at::Tensor rotate(const at::Tensor& x, const at::Tensor& table) const;
  at::Tensor states_before(const at::Tensor& written) const;

  int64_t rows_, chunks_, heads_, dim_;
  at::Tensor q_table_, k_table_;  // complex [H, chunks, rows, D / 2]
  at::Tensor chunk_fade_;         // g^rows [H, 1, 1]
  at::Tensor past_;               // [rows, rows]: 1 where a key is not ahead
};

}  // namespace lagwise::bench
