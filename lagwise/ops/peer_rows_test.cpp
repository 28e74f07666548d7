#include "lagwise/ops/peer_rows.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/dist/thread_peers.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using dist::run_together;
using dist::ThreadPeers;
using Shards = std::vector<int64_t>;

const std::vector<Shards> kSplits = {{7},       {3, 4},       {5, 0, 2},
                                     {0, 6, 1}, {1, 1, 1, 4}, {2, 0, 0, 1, 3, 0, 0, 1}};

/// Whole numbers, so that sums have no rounding.
Tensor rows(int64_t n, int64_t first) {
  return (at::arange(2 * n * 3, at::kLong).view({2, n, 3}) * 7 + first)
      .remainder(19)
      .to(at::kDouble);
}

Tensor gradient(const Tensor& y, const Tensor& weight, const Tensor& x) {
  return torch::autograd::grad({(y * weight).sum()}, {x})[0];
}

/// Runs act(peers, own rows) for every split and joins what the ranks return.
template <class Act>
Tensor joined(const Shards& shards, const Tensor& all, const Act& act) {
  std::vector<Tensor> found(shards.size());
  run_together(static_cast<int>(shards.size()), [&](const ThreadPeers& peers) {
    const int rank = peers.rank();
    const Tensor own = all.slice(1, rows_to(shards, rank), rows_to(shards, rank + 1))
                           .clone()
                           .requires_grad_(true);
    found[static_cast<size_t>(rank)] = act(peers, own);
  });
  return at::cat(found, 1);
}

TEST(PeerRows, GathersAllRowsAndAddsUpTheirGradients) {
  for (const Shards& shards : kSplits) {
    const auto size = static_cast<int>(shards.size());
    const Tensor all = rows(rows_to(shards, size), 1);
    // Rank r weighs all rows by weights of its own, whose sum is then the gradient.
    const auto weight = [&](int rank) { return all * all - 5.0 * rank; };
    Tensor want = at::zeros_like(all);
    for (int r = 0; r < size; ++r) want += weight(r);
    const Tensor got =
        joined(shards, all, [&](const ThreadPeers& peers, const Tensor& x) {
          const Tensor y = gather_rows(peers, shards, x);
          EXPECT_TRUE(y.equal(all));
          return gradient(y, weight(peers.rank()), x);
        });
    EXPECT_TRUE(got.equal(want)) << ::testing::PrintToString(shards);
  }
}

/// Each rank gets rows from as far left as it takes; what they give back is theirs.
TEST(PeerRows, FindsTheRowsBeforeAShard) {
  for (const Shards& shards : kSplits)
    for (const int64_t count : {0, 1, 3, 9}) {
      SCOPED_TRACE(::testing::PrintToString(shards) + " " + std::to_string(count));
      const auto size = static_cast<int>(shards.size());
      const int64_t n = rows_to(shards, size);
      const Tensor all = rows(n, 1), weight = rows(count, 2);
      const Tensor ahead = at::cat({at::zeros({2, count, 3}, at::kDouble), all}, 1);
      Tensor want = at::zeros_like(ahead);
      for (int r = 0; r < size; ++r)
        want.narrow(1, rows_to(shards, r), count) += (r + 1) * weight;
      const Tensor got =
          joined(shards, all, [&](const ThreadPeers& peers, const Tensor& x) {
            const Tensor y = rows_before(peers, shards, x, count);
            const int64_t start = rows_to(shards, peers.rank());
            EXPECT_TRUE(y.equal(ahead.narrow(1, start, count)));
            return gradient(y, (peers.rank() + 1) * weight, x);
          });
      EXPECT_TRUE(got.equal(want.slice(1, count)));
    }
}

TEST(PeerRows, SumsOverRanksAndSoDoGradients) {
  for (const int size : {1, 2, 5})
    run_together(size, [&](const ThreadPeers& peers) {
      const Tensor x =
          at::full({2, 3}, peers.rank() + 1.0, at::kDouble).requires_grad_(true);
      const double all = size * (size + 1) / 2.0;
      const Tensor y = sum_over_ranks(peers, x);
      EXPECT_TRUE(y.equal(at::full({2, 3}, all, at::kDouble)));
      EXPECT_TRUE(gradient(y, x.detach(), x).equal(at::full({2, 3}, all, at::kDouble)));
    });
}

/// Rank 0 has nothing to its left, and must meet the others in the backward pass all the
/// same; one that asks for no gradient leaves no graph.
TEST(PeerRows, LeavesNoGraphWhereNobodyAsksForGradients) {
  run_together(2, [](const ThreadPeers& peers) {
    const Shards shards = {2, 2};
    EXPECT_FALSE(rows_before(peers, shards, rows(2, 1), 1).requires_grad());
    EXPECT_FALSE(gather_rows(peers, shards, rows(2, 1)).requires_grad());
  });
}

TEST(PeerRows, NamesRowsThatDoNotFit) {
  try {
    run_together(2, [](const ThreadPeers& peers) {
      gather_rows(peers, {2, 2}, at::zeros({1, 3, 2}));
    });
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("expected x [.., 2, C], got [1, 3, 2]"));
  }
}

}  // namespace
}  // namespace lagwise::ops
