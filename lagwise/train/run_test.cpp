#include "lagwise/train/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/core/errors.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/train/trainer.h"

namespace lagwise {
namespace {

using lagwise::testing::contents;
using lagwise::testing::data_error;
using lagwise::testing::put;
using lagwise::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
namespace fs = std::filesystem;

/// A run of a few steps on a text, whose newest checkpoint is not its best.
class OpenedRun : public ::testing::Test {
 protected:
  OpenedRun() {
    // What is learnt, that a follows a, harms where b follows b.
    put(text, std::string(3600, 'a') + std::string(400, 'b'));
    Recipe recipe;
    recipe.data.task = "language", recipe.data.path = text, recipe.data.length = 16;
    recipe.model.layers = 1, recipe.model.dim = 16, recipe.model.heads = 2;
    recipe.train.steps = 6, recipe.train.batch = 2, recipe.train.eval_every = 2;
    recipe.train.eval_examples = 2, recipe.train.threads = 1;
    recipe.train.lr = 0.01, recipe.train.warmup = 1;
    TrainListener nobody;
    Trainer(recipe, run).run(nobody);
    best = open_run(run).step;
    EXPECT_LT(best, 6);
  }

  std::string file(int64_t step, const std::string& name) const {
    return run + "/checkpoints/0000000" + std::to_string(step) + "/" + name;
  }

  const TempFolder scratch;
  const std::string text = scratch / "text.txt", run = scratch / "run";
  int64_t best = 0;
};

TEST_F(OpenedRun, SaysThatItsDataIsNotThere) {
  fs::rename(text, scratch / "moved.txt");
  EXPECT_EQ(data_error([&] { open_run(run); }),
            text + ": expected the data of " + run +
                ", and nothing is there; --data says where it is now");
  EXPECT_THAT(open_run(run, Which::best, scratch / "moved.txt").notes, IsEmpty());
}

TEST_F(OpenedRun, TakesAnOlderCheckpointWhereTheNewestIsDamaged) {
  EXPECT_EQ(open_run(run, Which::last).step, 6);
  std::string bytes = contents(file(6, "model.safetensors"));
  bytes.back() ^= 1;
  put(file(6, "model.safetensors"), bytes);
  const auto older = open_run(run, Which::last);
  EXPECT_EQ(older.step, best);
  ASSERT_EQ(older.notes.size(), 1u);
  EXPECT_THAT(older.notes[0],
              AllOf(StartsWith("passed over a damaged checkpoint: " +
                               file(6, "model.safetensors") + ": expected the hash "),
                    HasSubstr("; taking ")));
  // The best one is asked for: another would not be it.
  EXPECT_THAT(open_run(run).notes, IsEmpty());
  put(file(best, "model.safetensors"), "cut");
  EXPECT_THAT(data_error([&] { open_run(run); }),
              StartsWith(file(best, "model.safetensors")));
}

TEST_F(OpenedRun, NamesTheFileOfADamagedState) {
  fs::remove_all(fs::path(file(best, "state.json")).parent_path());
  auto state = nlohmann::json::parse(contents(file(6, "state.json")));
  for (const char* key : {"fnv1a", "best"}) state.erase(key);
  const auto refused = [&](const std::string& key, const nlohmann::json& value) {
    auto other = state;
    other[nlohmann::json::json_pointer(key)] = value;
    put(file(6, "state.json"), other.dump());
    return data_error([&] { open_run(run); });
  };
  EXPECT_THAT(refused("/recipe", "[train]\nstepz = 3\n"),
              AllOf(StartsWith(file(6, "state.json")), HasSubstr("train.stepz")));
  EXPECT_THAT(refused("/model/encoding", "roqe"), StartsWith(file(6, "state.json")));
  EXPECT_THAT(refused("/words", "none"), StartsWith(file(6, "state.json")));
  EXPECT_THAT(refused("/model/vocabulary", -3), HasSubstr("'model.vocabulary'"));
  EXPECT_THAT(refused("/model/grid", {int64_t{1} << 40}), HasSubstr("'model.grid'"));
  // Refused before anything of that size is made.
  EXPECT_THAT(refused("/model/dim", 100'000'000), HasSubstr("that fits into memory"));
  EXPECT_THAT(refused("/model/layers", 1'000'000'000), HasSubstr("fits into memory"));
}

}  // namespace
}  // namespace lagwise
