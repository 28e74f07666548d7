// Real Gloo over loopback, between threads of this process: each is a rank with
// connections of its own.

#include "lagwise/dist/gloo_peers.h"

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "lagwise/dist/lost_peer.h"
#include "lagwise/dist/tree_sum.h"

namespace lagwise::dist {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

int free_port() {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  if (file < 0) throw std::runtime_error("no socket");
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  EXPECT_EQ(bind(file, reinterpret_cast<sockaddr*>(&place), size), 0);
  EXPECT_EQ(getsockname(file, reinterpret_cast<sockaddr*>(&place), &size), 0);
  close(file);
  return ntohs(place.sin_port);
}

World world_of(int rank, int size, int port) {
  World world;
  world.rank = rank, world.size = size;
  world.address = "127.0.0.1", world.port = port;
  return world;
}

/// Does `act` as every rank at once.
void as_everybody(int size, const std::function<void(ProcessPeers&)>& act,
                  milliseconds timeout = milliseconds(20000)) {
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([=, &act] {
      const auto peers = meet(world_of(rank, size, port), timeout);
      act(*peers);
    });
  for (std::thread& thread : threads) thread.join();
}

class GlooPeersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gloo()) GTEST_SKIP() << "this build has no Gloo";
  }
};

TEST_F(GlooPeersTest, GatherExchangeAndBroadcast) {
  for (const int size : {1, 2, 3, 4})
    as_everybody(size, [&](ProcessPeers& peers) {
      EXPECT_EQ(peers.size(), size);
      EXPECT_EQ(peers.ranks_on_this_host(), size);
      const at::Tensor mine = at::full({2, 3}, peers.rank(), at::kDouble);
      const at::Tensor all = peers.gather(mine.t());  // strides of its own
      ASSERT_EQ(all.sizes(), (std::vector<int64_t>{size, 3, 2}));
      for (int rank = 0; rank < size; ++rank)
        EXPECT_TRUE(at::equal(all[rank], at::full({3, 2}, rank, at::kDouble)));
      EXPECT_EQ(peers.gather(at::empty({0, 4})).size(0), size);
      const int other = size - 1 - peers.rank();
      EXPECT_TRUE(
          at::equal(peers.exchange(mine, other), at::full({2, 3}, other, at::kDouble)));
      at::Tensor given = at::full({4}, peers.rank(), at::kLong);
      peers.broadcast_(given, size - 1);
      EXPECT_TRUE(at::equal(given, at::full({4}, size - 1, at::kLong)));
    });
}

TEST_F(GlooPeersTest, CountsWhatItSends) {
  as_everybody(2, [](ProcessPeers& peers) {
    const int64_t before = peers.bytes_sent();
    peers.gather(at::zeros({10}, at::kFloat));
    EXPECT_EQ(peers.bytes_sent() - before, 40);
  });
}

TEST_F(GlooPeersTest, AGroupIsNumberedByItself) {
  as_everybody(4, [](ProcessPeers& peers) {
    const int first = peers.rank() / 2 * 2;
    const auto group = peers.group({first, first + 1});
    EXPECT_EQ(group->size(), 2);
    EXPECT_EQ(group->rank(), peers.rank() % 2);
    const at::Tensor all = group->gather(at::full({1}, peers.rank(), at::kLong));
    EXPECT_TRUE(at::equal(all.view({2}), at::arange(first, first + 2)));
  });
}

TEST_F(GlooPeersTest, TreeSumHasTheSameBitsForAnyNumberOfPeers) {
  const int64_t leaves = 8;
  const at::Tensor terms = at::randn({leaves, 3, 5});
  TreeSum alone;
  for (int64_t i = 0; i < leaves; ++i) alone.add(terms[i].clone());
  const at::Tensor expected = alone.total(nullptr);
  EXPECT_TRUE(at::equal(expected, ((terms[0] + terms[1]) + (terms[2] + terms[3])) +
                                      ((terms[4] + terms[5]) + (terms[6] + terms[7]))));
  for (const int size : {2, 4, 8})
    as_everybody(size, [&](ProcessPeers& peers) {
      TreeSum sum;
      const int64_t own = leaves / size;
      for (int64_t i = 0; i < own; ++i) sum.add(terms[peers.rank() * own + i].clone());
      EXPECT_TRUE(at::equal(sum.total(&peers), expected)) << size;
    });
}

/// Connections of a process close when it ends. Threads that have lost a peer keep theirs,
/// so here some of them see it by the timeout alone.
TEST_F(GlooPeersTest, APeerThatLeavesIsNamedByAll) {
  const auto act = [](ProcessPeers& peers) {
    if (peers.rank() == 3) return;  // its connections close
    try {
      for (int i = 0; i < 100; ++i) {
        const at::Tensor x = at::zeros({1000});
        peers.exchange(x, peers.rank() ^ 1);
        peers.exchange(x, peers.rank() ^ 2);
      }
      ADD_FAILURE() << "nobody was missed";
    } catch (const LostPeer& lost) {
      EXPECT_EQ(lost.rank(), 3) << "seen by " << peers.rank();
      EXPECT_THAT(lost.what(), HasSubstr("rank 3 (host "));
    }
  };
  as_everybody(4, act, milliseconds(2000));
}

TEST_F(GlooPeersTest, APeerThatIsSilentIsNamedAfterTheTimeout) {
  as_everybody(
      3,
      [](ProcessPeers& peers) {
        if (peers.rank() == 1) {
          std::this_thread::sleep_for(milliseconds(9000));
          return;
        }
        const auto begin = std::chrono::steady_clock::now();
        try {
          peers.gather(at::zeros({5}));
          ADD_FAILURE() << "nobody was missed";
        } catch (const LostPeer& lost) {
          EXPECT_EQ(lost.rank(), 1);
        }
        EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(8900));
      },
      milliseconds(4000));  // enough to meet in, on a busy machine too
}

TEST_F(GlooPeersTest, SaysWhoDidNotCome) {
  const int port = free_port();
  try {
    meet(world_of(0, 2, port), milliseconds(500));
    ADD_FAILURE() << "nobody was missed";
  } catch (const LostPeer& lost) {
    EXPECT_EQ(lost.rank(), 1);
  }
  try {
    meet(world_of(1, 2, free_port()), milliseconds(500));
    ADD_FAILURE() << "nobody was missed";
  } catch (const LostPeer& lost) {
    EXPECT_EQ(lost.rank(), 0);
    EXPECT_THAT(lost.what(), HasSubstr("MASTER_PORT"));
  }
}

}  // namespace
}  // namespace lagwise::dist
