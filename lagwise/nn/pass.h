#pragma once

#include <vector>

#include "lagwise/encodings/encoding.h"
#include "lagwise/ops/encoded.h"
#include "lagwise/ops/peers.h"

namespace lagwise::nn {

/// What all layers know about one pass over a batch.
struct Pass {
  Placement at = {};
  Draw draw = {};
  Code code = {};               ///< of the encoding, at these positions
  at::Tensor lengths = {};      ///< [B]: real rows of each sequence; undefined: all
  at::Tensor key_lengths = {};  ///< [B]: of the keys, in cross attention
  double dropout = 0;           ///< 0 outside of training
  int64_t first_row = 0;        ///< the number of sequence 0 in the whole batch

  /// Those who have the other rows of these sequences, and how many rows each rank has;
  /// nullptr: all rows are here. Rows stand in the order of ranks, from position 0 on.
  const ops::Peers* peers = nullptr;
  std::vector<int64_t> shards = {};

  /// Only where sequences are at different positions, while decoding: where the queries
  /// of each begin, and its code. `at` then holds all positions as well, [B, N].
  std::vector<int64_t> starts = {};
  std::vector<Code> codes = {};
};

/// The first `count` rows of sequence b, [1, H, count, .], of x [B, H, N, .]; undefined
/// of an undefined x.
at::Tensor sequence(const at::Tensor& x, int64_t b, int64_t count);

/// What was kept of each sequence, in another order: that of sequence b is a copy of what
/// sequence order[b] had. None where nothing was kept.
template <class Kept, class Copy>
std::vector<Kept> reordered(const std::vector<Kept>& kept, const at::Tensor& order,
                            const Copy& copy) {
  std::vector<Kept> now;
  for (int64_t b = 0; b < order.size(0) && !kept.empty(); ++b)
    now.push_back(copy(kept.at(static_cast<size_t>(order[b].item<int64_t>()))));
  return now;
}

/// Rows kept from before [B, H, M, .], the last of which are `fresh` [B, H, n, .]: those
/// as they came where gradients are asked for, since what is kept has no graph.
at::Tensor with_graph(const at::Tensor& kept, const at::Tensor& fresh);

/// Where sequence b of such a pass stands.
Placement placement_of(const Pass& pass, int64_t b);

/// Encodes the queries and keys of a pass. Where sequences are at different positions
/// each is encoded by itself, so that encodings that take no explicit positions work as
/// well; tables by lag are then those of the first sequence.
Encoded encode_rows(Encoding& encoding, const at::Tensor& q, const at::Tensor& k,
                    const Layer& layer, const Pass& pass);

}  // namespace lagwise::nn
