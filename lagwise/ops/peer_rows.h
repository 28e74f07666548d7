#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lagwise/ops/peers.h"

namespace lagwise::ops {

// Rows of a sequence that is cut along its length: rank p has shards[p] of them, in the
// order of ranks. Each function is called by all ranks together and is one step of the
// graph on every one of them, in both directions: so where all ranks build the same
// graph, their backward passes meet in the same order. Gradients are those of the sum of
// all ranks' losses. Sums are formed in the order of ranks, so all have the same bits.
// The peers must outlive the graph.

/// How many rows stand before those of a rank.
int64_t rows_to(const std::vector<int64_t>& shards, int rank);

/// All rows of all ranks, [.., N, C], from x [.., n, C]. Traffic grows with N: each rank
/// gives n rows to every other, and in the backward pass as many gradients of the
/// other's rows (padded to the longest shard).
at::Tensor gather_rows(const Peers& peers, const std::vector<int64_t>& shards,
                       const at::Tensor& x);

/// The `count` rows before the first of this rank, [B, count, C], from x [B, n, C]; zeros
/// before the first of all. They come from further left where a shard is shorter than
/// that. Each rank gives `count` rows.
at::Tensor rows_before(const Peers& peers, const std::vector<int64_t>& shards,
                       const at::Tensor& x, int64_t count);

/// The sum of everybody's x.
at::Tensor sum_over_ranks(const Peers& peers, const at::Tensor& x);

}  // namespace lagwise::ops
