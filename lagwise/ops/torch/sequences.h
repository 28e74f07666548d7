#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lagwise::ops {

/// The rows of one sequence: [begin, begin + count) of a batch row. Sequences attend
/// to themselves alone.
struct Sequence {
  int64_t row;
  int64_t query_begin, queries;
  int64_t key_begin, keys;
};

/// How a batch is cut into sequences, in whole numbers on the CPU; undefined: "none".
///
///     padded   starts [B]       rows before it are no queries and no keys (padding on the
///                               left); none: 0
///              lengths [B]      how many rows from there on are real; none: the rest
///              key_starts [B],  the same of the keys instead; alone, every query is real
///              key_lengths [B]
///     packed   cu_seqlens [S + 1], 0, ..., N: S sequences in B = 1 row, of keys too
///              key_cu_seqlens [S + 1], 0, ..., M: those of the keys instead
///
/// Where `starts`, `lengths` or `cu_seqlens` also cut the keys, N = M is needed.
struct Ragged {
  at::Tensor lengths = {}, key_lengths = {}, cu_seqlens = {}, key_cu_seqlens = {};
  at::Tensor starts = {}, key_starts = {};
};

/// The batch that is cut.
struct BatchShape {
  int64_t b, n, m;    ///< rows, queries and keys in each
  bool one_sequence;  ///< keys are cut as the queries are: key_* is refused
};

struct Sequences {
  std::vector<Sequence> each;  ///< one per batch row, or as packed
  bool ragged;                 ///< some rows may belong to no sequence
};

/// Reads and checks; a TORCH_CHECK beginning with `op` says what was expected and what
/// came.
Sequences read_sequences(const char* op, const BatchShape& batch, const Ragged& ragged);

}  // namespace lagwise::ops
