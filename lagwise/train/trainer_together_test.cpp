// One run, trained by several: threads stand for processes (dist/thread_peers.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/core/errors.h"
#include "lagwise/dist/lost_peer.h"
#include "lagwise/dist/thread_peers.h"
#include "lagwise/train/testing_trainer.h"
#include "lagwise/train/trainer.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

Recipe in_leaves(int64_t leaves) {
  Recipe recipe = tiny();
  recipe.train.leaves = leaves;
  recipe.model.encoding = "rope:layout=half";
  return recipe;
}

void train_together(const Recipe& recipe, const std::string& folder, int size,
                    int64_t stop_after = 0, bool columns = false) {
  dist::run_together(size, [&](const dist::ThreadPeers& peers) {
    TrainerOptions options;
    options.peers = &peers;
    if (columns) options.columns = &peers;
    // Only one of them is asked to stop.
    StopsAfter listener(stop_after);
    if (stop_after > 0 && peers.rank() == size - 1)
      options.stop = [&] { return listener.stop; };
    Trainer trainer(recipe, folder, options);
    if (stop_after > 0) {
      EXPECT_THROW(trainer.run(listener), Interrupted);
    } else {
      trainer.run(listener);
    }
  });
}

std::vector<nlohmann::json> untimed_lines(const std::string& folder) {
  std::vector<nlohmann::json> all = lines(folder);
  for (nlohmann::json& line : all)
    for (const char* time : {"seconds", "tokens_per_second", "peak_bytes"})
      line.erase(time);
  return all;
}

/// Losses that differ by rounding at most.
void expect_near_losses(const std::string& folder, const std::string& other) {
  const auto one = untimed_lines(folder), two = untimed_lines(other);
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].contains("loss"), two[i].contains("loss"));
    if (!one[i].contains("loss")) continue;
    EXPECT_NEAR(one[i]["loss"].get<double>(), two[i]["loss"].get<double>(), 1e-4);
  }
}

TEST(TrainerTogether, HasTheSameBitsForAnyNumberOfProcesses) {
  const TempFolder scratch;
  const Recipe recipe = in_leaves(4);
  train(recipe, scratch / "alone");
  for (const int size : {2, 4}) {
    const std::string folder = scratch / std::to_string(size);
    train_together(recipe, folder, size);
    EXPECT_EQ(model_bytes(folder, "00000030"),
              model_bytes(scratch / "alone", "00000030"));
    EXPECT_EQ(untimed_lines(folder), untimed_lines(scratch / "alone"));
  }
}

TEST(TrainerTogether, AStopOfOneSavesAndGoesOnWithAnotherNumber) {
  const TempFolder scratch;
  const Recipe recipe = in_leaves(4);
  train(recipe, scratch / "alone");
  train_together(recipe, scratch / "run", 4, 11);
  train_together(recipe, scratch / "run", 2, 19);
  train(recipe, scratch / "run");
  EXPECT_EQ(model_bytes(scratch / "run", "00000030"),
            model_bytes(scratch / "alone", "00000030"));
  EXPECT_EQ(untimed_lines(scratch / "run"), untimed_lines(scratch / "alone"));
}

/// Leaves change the order of sums, nothing else.
TEST(TrainerTogether, LeavesChangeLossesByRoundingAlone) {
  const TempFolder scratch;
  train(in_leaves(1), scratch / "one");
  train(in_leaves(4), scratch / "four");
  expect_near_losses(scratch / "one", scratch / "four");
}

TEST(TrainerTogether, SharesTheColumnsOfARow) {
  const TempFolder scratch;
  Recipe recipe = in_leaves(1);
  recipe.model.encoding = "decay", recipe.model.attention = "linear:map=elu1";
  train(recipe, scratch / "alone");
  recipe.train.sequence_ranks = 2;
  train_together(recipe, scratch / "columns", 2, 0, true);
  expect_near_losses(scratch / "alone", scratch / "columns");
}

/// A peer that is lost at its n-th gathering.
class LosesAPeer : public dist::ThreadPeers {
 public:
  LosesAPeer(std::shared_ptr<dist::LetterBoxes> boxes, int rank)
      : ThreadPeers(std::move(boxes), rank) {}
  at::Tensor gather(const at::Tensor& x) const override {
    if (++gathered_ > 20) throw dist::LostPeer(1, "b", "its connection is closed");
    return ThreadPeers::gather(x);
  }

 private:
  mutable int gathered_ = 0;
};

TEST(TrainerTogether, SaysWhoWasLostAndWhatIsThere) {
  const TempFolder scratch;
  std::string said;
  dist::run_together(2, [&](const dist::ThreadPeers& peers) {
    static const auto boxes = std::make_shared<dist::LetterBoxes>(2);
    const LosesAPeer losing(boxes, peers.rank());
    TrainerOptions options;
    options.peers = &losing;
    TrainListener nobody;
    Trainer trainer(in_leaves(2), scratch / "run", options);
    try {
      trainer.run(nobody);
      ADD_FAILURE() << "nobody was lost";
    } catch (const dist::LostPeer& lost) {
      if (peers.rank() == 0) said = lost.what();
    }
  });
  EXPECT_THAT(said, HasSubstr("rank 1 (host b) was lost at step "));
  EXPECT_THAT(said, HasSubstr("(its connection is closed); newest checkpoint "));
  EXPECT_THAT(said, HasSubstr("/checkpoints/00000016; the same command goes on"));
}

}  // namespace
}  // namespace lagwise
