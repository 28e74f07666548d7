#include "lagwise/ops/peer_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>

#include "lagwise/ops/torch/graph_step.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using Shards = std::vector<int64_t>;

void check_rows(const char* op, const Peers& peers, const Shards& shards,
                const Tensor& x) {
  const auto rank = static_cast<size_t>(peers.rank());
  TORCH_CHECK(shards.size() == static_cast<size_t>(peers.size()), op,
              ": expected the rows of ", peers.size(), " ranks, got ", shards.size());
  TORCH_CHECK(x.dim() >= 2 && x.size(-2) == shards[rank], op, ": expected x [.., ",
              shards[rank], ", C], got ", x.sizes());
}

/// In the order of ranks.
Tensor sum_in_order(const Tensor& everybody) {
  Tensor sum = everybody[0].clone();
  for (int64_t p = 1; p < everybody.size(0); ++p) sum += everybody[p];
  return sum;
}

/// x [.., n, C] with zeros up to `rows` rows.
Tensor padded_to(const Tensor& x, int64_t rows) {
  return at::constant_pad_nd(x, {0, 0, 0, rows - x.size(-2)});
}

/// What everybody has for this rank, added up: rank p gives parts[r] to each r. All meet
/// pairwise, in rounds t = 0, 1, ..: ranks whose sum is t modulo their number. In each
/// round everyone has one partner, perhaps itself, so nobody waits in a circle.
Tensor sum_of_parts(const Peers& peers, const std::vector<Tensor>& parts) {
  const int size = peers.size(), rank = peers.rank();
  std::vector<Tensor> given(parts.size());
  for (int t = 0; t < size; ++t) {
    const int other = (t - rank + size) % size;
    const auto place = static_cast<size_t>(other);
    given[place] = other == rank ? parts[place] : peers.exchange(parts[place], other);
  }
  Tensor sum = given[0].clone();
  for (size_t p = 1; p < given.size(); ++p) sum += given[p];
  return sum;
}

/// Rows of one rank among those just before another.
struct Overlap {
  int64_t in_shard, in_before, count;  ///< the first of them there, and how many
};

/// Which rows of shard p are among the `count` before shard r > p.
Overlap overlap(const Shards& shards, int p, int r, int64_t count) {
  const int64_t first = rows_to(shards, r) - count;
  const int64_t begin = std::max(rows_to(shards, p), first);
  const int64_t end = rows_to(shards, p + 1);
  return {begin - rows_to(shards, p), begin - first, std::max<int64_t>(0, end - begin)};
}

}  // namespace

int64_t rows_to(const Shards& shards, int rank) {
  return std::accumulate(shards.begin(), shards.begin() + rank, int64_t{0});
}

Tensor gather_rows(const Peers& peers, const Shards& shards, const Tensor& x) {
  check_rows("gather_rows", peers, shards, x);
  const int64_t longest = *std::max_element(shards.begin(), shards.end());
  const Tensor everybody = peers.gather(padded_to(x.detach(), longest).contiguous());
  std::vector<Tensor> rows;
  for (size_t p = 0; p < shards.size(); ++p)
    rows.push_back(everybody[static_cast<int64_t>(p)].narrow(-2, 0, shards[p]));
  const auto backward = [&peers, shards, longest](std::vector<Tensor> d) {
    std::vector<Tensor> parts;
    for (int p = 0; p < peers.size(); ++p) {
      const int64_t rows_of_p = shards[static_cast<size_t>(p)];
      const Tensor part = d[0].narrow(-2, rows_to(shards, p), rows_of_p);
      parts.push_back(padded_to(part, longest).contiguous());
    }
    const int64_t own = shards[static_cast<size_t>(peers.rank())];
    return std::vector<Tensor>{sum_of_parts(peers, parts).narrow(-2, 0, own)};
  };
  return graph_step("gather_rows", {x}, {at::cat(rows, -2)}, backward)[0];
}

Tensor rows_before(const Peers& peers, const Shards& shards, const Tensor& x,
                   int64_t count) {
  check_rows("rows_before", peers, shards, x);
  const int rank = peers.rank();
  const int64_t n = x.size(1), kept = std::min(n, count);
  // The last rows of every shard, at the end of `count` places.
  Tensor last = at::zeros({x.size(0), count, x.size(2)}, x.options());
  last.narrow(1, count - kept, kept).copy_(x.detach().narrow(1, n - kept, kept));
  const Tensor lasts = peers.gather(last);
  Tensor before = at::zeros_like(last);
  for (int p = 0; p < rank; ++p) {
    const Overlap shared = overlap(shards, p, rank, count);
    if (shared.count == 0) continue;
    const int64_t missing = shards[static_cast<size_t>(p)] - count;  // not sent, if > 0
    before.narrow(1, shared.in_before, shared.count)
        .copy_(lasts[p].narrow(1, shared.in_shard - missing, shared.count));
  }
  const auto backward = [&peers, shards, count, n](std::vector<Tensor> d) {
    const Tensor everybody = peers.gather(d[0].contiguous());
    Tensor dx = at::zeros({d[0].size(0), n, d[0].size(2)}, d[0].options());
    for (int r = peers.rank() + 1; r < peers.size(); ++r) {
      const Overlap shared = overlap(shards, peers.rank(), r, count);
      if (shared.count == 0) continue;
      dx.narrow(1, shared.in_shard, shared.count) +=
          everybody[r].narrow(1, shared.in_before, shared.count);
    }
    return std::vector<Tensor>{dx};
  };
  return graph_step("rows_before", {x}, {before}, backward)[0];
}

Tensor sum_over_ranks(const Peers& peers, const Tensor& x) {
  const auto backward = [&peers](std::vector<Tensor> d) {
    return std::vector<Tensor>{sum_in_order(peers.gather(d[0].contiguous()))};
  };
  return graph_step("sum_over_ranks", {x},
                    {sum_in_order(peers.gather(x.detach().contiguous()))}, backward)[0];
}

}  // namespace lagwise::ops
