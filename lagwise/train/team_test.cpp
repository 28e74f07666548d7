#include "lagwise/train/team.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/dist/thread_peers.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;

TrainConfig config_of(int64_t batch, int64_t leaves, int64_t sequence_ranks = 1) {
  TrainConfig config;
  config.batch = batch, config.leaves = leaves, config.sequence_ranks = sequence_ranks;
  return config;
}

std::string refusal_of(const TrainConfig& config, int size = 1) {
  std::string said = "(nothing was refused)";
  dist::run_together(size, [&](const dist::ThreadPeers& peers) {
    try {
      Team(config, &peers, nullptr);
    } catch (const std::invalid_argument& error) {
      if (peers.rank() == 0) said = error.what();
    }
  });
  return said;
}

TEST(Team, AloneDoesAll) {
  const Team team(config_of(10, 4), nullptr, nullptr);
  EXPECT_TRUE(team.alone());
  EXPECT_TRUE(team.first());
  EXPECT_EQ(team.first_leaf(), 0);
  EXPECT_EQ(team.own_leaves(), 4);
  std::vector<int64_t> ends;  // leaves are as even as they can be, and all rows
  for (int64_t leaf = 0; leaf < 4; ++leaf) {
    EXPECT_EQ(team.rows(leaf).begin, ends.empty() ? 0 : ends.back());
    ends.push_back(team.rows(leaf).end);
  }
  EXPECT_EQ(ends, (std::vector<int64_t>{2, 5, 7, 10}));
}

TEST(Team, SharesOutLeavesAndColumns) {
  dist::run_together(4, [](const dist::ThreadPeers& peers) {
    const Team rows(config_of(8, 8), &peers, nullptr);
    EXPECT_EQ(rows.groups(), 4);
    EXPECT_EQ(rows.own_leaves(), 2);
    EXPECT_EQ(rows.first_leaf(), 2 * peers.rank());
    const Team columns(config_of(8, 2, 4), &peers, &peers);
    EXPECT_EQ(columns.groups(), 1);
    EXPECT_EQ(columns.own_leaves(), 2);
    Batch batch;
    batch.tokens = at::arange(16).view({1, 16});
    const Batch part = columns.part(batch, 1);
    EXPECT_EQ(part.start, 4 * peers.rank());
    EXPECT_TRUE(
        at::equal(part.tokens, batch.tokens.narrow(1, int64_t{4} * peers.rank(), 4)));
  });
}

TEST(Team, RefusesNumbersThatDoNotFit) {
  EXPECT_THAT(refusal_of(config_of(8, 3)), HasSubstr("train.leaves: expected a power"));
  EXPECT_THAT(refusal_of(config_of(2, 4)), HasSubstr("at most train.batch = 2, got 4"));
  EXPECT_THAT(refusal_of(config_of(8, 2), 4), HasSubstr("a multiple of 4"));
  EXPECT_THAT(refusal_of(config_of(8, 1, 2), 1), HasSubstr("a divisor of the number"));
  EXPECT_THAT(refusal_of(config_of(8, 1, 3), 3), HasSubstr("train.sequence_ranks"));
  TrainConfig past = config_of(8, 1, 2);
  past.past = "0,1";
  std::string said;
  dist::run_together(2, [&](const dist::ThreadPeers& peers) {
    try {
      Team(past, &peers, &peers);
    } catch (const std::invalid_argument& error) {
      if (peers.rank() == 0) said = error.what();
    }
  });
  EXPECT_THAT(said, HasSubstr("train.past: expected 0"));
}

TEST(Team, SharesWhatTheFirstHas) {
  dist::run_together(2, [](const dist::ThreadPeers& peers) {
    const Team team(config_of(2, 2), &peers, nullptr);
    std::string text = peers.rank() == 0 ? "said" : "something else";
    team.share(text);
    EXPECT_EQ(text, "said");
    double number = peers.rank();
    team.share(number);
    EXPECT_EQ(number, 0);
    EXPECT_NO_THROW(team.expect_same(7, "number"));
  });
  EXPECT_THROW(dist::run_together(2,
                                  [](const dist::ThreadPeers& peers) {
                                    const Team team(config_of(2, 2), &peers, nullptr);
                                    team.expect_same(uint64_t(peers.rank()), "number");
                                  }),
               std::runtime_error);
}

}  // namespace
}  // namespace lagwise
