#include "lagwise/dist/thread_peers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::dist {
namespace {

at::Tensor row(double first, double second) {
  return at::tensor({first, second}, at::kDouble);
}

TEST(ThreadPeers, GathersInTheOrderOfRanks) {
  for (const int size : {1, 2, 5})
    run_together(size, [&](const ThreadPeers& peers) {
      const at::Tensor all = peers.gather(row(peers.rank(), 7));
      ASSERT_EQ(all.sizes(), at::IntArrayRef({size, 2}));
      for (int other = 0; other < size; ++other)
        EXPECT_TRUE(all[other].equal(row(other, 7)));
      EXPECT_EQ(peers.bytes_sent(), (size - 1) * 2 * 8);
    });
}

TEST(ThreadPeers, ExchangesPairwiseWhileOthersDoSomethingElse) {
  run_together(3, [](const ThreadPeers& peers) {
    if (peers.rank() == 1) return;
    const int other = 2 - peers.rank();
    EXPECT_TRUE(peers.exchange(row(peers.rank(), 1), other).equal(row(other, 1)));
    EXPECT_EQ(peers.bytes_sent(), 16);
  });
}

TEST(ThreadPeers, BroadcastsFromAnyRank) {
  run_together(4, [](const ThreadPeers& peers) {
    at::Tensor x = row(peers.rank(), peers.rank());
    peers.broadcast_(x, 2);
    EXPECT_TRUE(x.equal(row(2, 2)));
    EXPECT_EQ(peers.bytes_sent(), peers.rank() == 2 ? 3 * 16 : 0);
  });
}

/// What is given is what it was at that moment, whatever its owner does to it later.
TEST(ThreadPeers, GivesACopy) {
  run_together(2, [](const ThreadPeers& peers) {
    at::Tensor x = row(peers.rank(), 0);
    const at::Tensor all = peers.gather(x);
    x.fill_(9);
    EXPECT_TRUE(all[peers.rank()].equal(row(peers.rank(), 0)));
  });
}

TEST(ThreadPeers, AFailureOfOneEndsAllAndIsTold) {
  try {
    run_together(3, [](const ThreadPeers& peers) {
      if (peers.rank() == 1) throw std::invalid_argument("mine");
      peers.gather(row(0, 0));
    });
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
}

TEST(ThreadPeers, RefusesTensorsThatDiffer) {
  EXPECT_THROW(run_together(2,
                            [](const ThreadPeers& peers) {
                              peers.gather(at::zeros({peers.rank() + 1}));
                            }),
               std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::dist
