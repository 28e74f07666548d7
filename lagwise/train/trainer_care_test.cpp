// What training does where its data, its checkpoints or its recipe are not as they
// should be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/train/run.h"
#include "lagwise/train/testing_trainer.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct KeepsNotes : TrainListener {
  void noted(const std::string& line) override { notes.push_back(line); }
  std::vector<std::string> notes;
};

TEST(TrainerCare, TrainsWithoutEvaluatingWhereThereIsNoSplitValid) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.data.task = "counting:valid=none";
  KeepsNotes listener;
  Trainer(recipe, scratch / "run").run(listener);
  EXPECT_THAT(listener.notes,
              ElementsAre("the data has no split valid: nothing is evaluated"));
  EXPECT_EQ(open_run(scratch / "run").step, 30);
  for (const auto& line : lines(scratch / "run")) EXPECT_FALSE(line.contains("split"));
  EXPECT_TRUE(Trainer(recipe, scratch / "run").finished());
}

TEST(TrainerCare, SavesBeforeAnEvaluationThatFails) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.data.task = "counting:valid=broken";
  OddlySplitTask::break_evaluation = true;
  for (int i = 0; i < 2; ++i)  // goes on where it was: in the evaluation
    EXPECT_EQ(message<DataError>([&] { train(recipe, scratch / "run"); }),
              "x: expected valid data");
  EXPECT_EQ(Checkpoints(scratch / "run").steps(), (std::vector<int64_t>{7, 8}));
  OddlySplitTask::break_evaluation = false;
  train(recipe, scratch / "run");
  train(recipe, scratch / "whole");
  EXPECT_EQ(model_bytes(scratch / "run", "00000030"),
            model_bytes(scratch / "whole", "00000030"));
  const auto evaluated = [&](const std::string& run) {
    std::vector<std::pair<int64_t, double>> all;
    for (const auto& line : lines(run))
      if (line.contains("split")) all.emplace_back(line["step"], line["value"]);
    return all;
  };
  EXPECT_EQ(evaluated(scratch / "run"), evaluated(scratch / "whole"));
  EXPECT_EQ(evaluated(scratch / "run").size(), 4u);
}

TEST(TrainerCare, GoesOnFromAnOlderCheckpointWhereTheNewestIsDamaged) {
  const TempFolder scratch;
  train(tiny(), scratch / "whole");
  train_until(tiny(), scratch / "run", 20);
  ASSERT_EQ(Checkpoints(scratch / "run").steps(), (std::vector<int64_t>{16, 20}));
  std::string flipped = model_bytes(scratch / "run", "00000020");
  flipped[flipped.size() - 9] ^= 0x40;
  put(scratch / "run/checkpoints/00000020/model.safetensors", flipped);
  KeepsNotes listener;
  Trainer trainer(tiny(), scratch / "run");
  EXPECT_EQ(trainer.step(), 16);
  trainer.run(listener);
  ASSERT_EQ(listener.notes.size(), 1u);
  EXPECT_THAT(listener.notes[0],
              AllOf(StartsWith("passed over a damaged checkpoint: "),
                    HasSubstr("checkpoints/00000020/model.safetensors: expected the "
                              "hash ")));
  EXPECT_EQ(model_bytes(scratch / "run", "00000030"),
            model_bytes(scratch / "whole", "00000030"));
}

TEST(TrainerCare, NeverCallsADamagedCheckpointGood) {
  const TempFolder scratch;
  train_until(tiny(), scratch / "run", 2);
  const std::string folder = scratch / "run/checkpoints/00000002/";
  // As one of an earlier version: without hashes. Its last weight is NaN.
  auto state = nlohmann::json::parse(contents(folder + "state.json"));
  for (const char* key : {"fnv1a", "files", "judged"}) EXPECT_EQ(state.erase(key), 1u);
  put(folder + "state.json", state.dump());
  EXPECT_EQ(Trainer(tiny(), scratch / "run").step(), 2);  // loads all the same
  std::string bytes = contents(folder + "model.safetensors");
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xC0\x7F", 4));
  put(folder + "model.safetensors", bytes);
  EXPECT_THAT(message<DataError>([&] { Trainer(tiny(), scratch / "run"); }),
              HasSubstr("00000002/model.safetensors: expected finite numbers in "));
}

TEST(TrainerCare, SaysThatAnotherTorchGoesOn) {
  const TempFolder scratch;
  train_until(tiny(), scratch / "run", 2);
  const std::string file = scratch / "run/checkpoints/00000002/state.json";
  auto state = nlohmann::json::parse(contents(file));
  state["arithmetic"]["torch"] = "0.4.1";
  state.erase("fnv1a");
  put(file, state.dump());
  KeepsNotes listener;
  Trainer(tiny(), scratch / "run").run(listener);
  ASSERT_EQ(listener.notes.size(), 1u);
  EXPECT_THAT(listener.notes[0],
              AllOf(StartsWith("goes on with torch "), HasSubstr("in place of 0.4.1")));
}

TEST(TrainerCare, RefusesWhatCannotBeComputedBeforeItWritesAnything) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.model.encoding = "learned:max=6";
  EXPECT_THAT(message<std::invalid_argument>([&] { Trainer(recipe, scratch / "run"); }),
              StartsWith("learned: position 11 is not in its table of 6 positions"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "run"));
}

TEST(TrainerCare, TakesAnotherRecipeWhereNothingWasSaved) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.data.task = "counting:valid=broken", recipe.train.lr = 1e30;
  recipe.train.warmup = 0, recipe.train.checkpoint_every = 1000;
  recipe.train.eval_every = 0;
  EXPECT_THROW(train(recipe, scratch / "run"), Diverged);
  EXPECT_TRUE(std::filesystem::exists(scratch / "run/recipe.toml"));
  train(tiny(), scratch / "run");
  EXPECT_EQ(open_run(scratch / "run").recipe.train.lr, tiny().train.lr);
}

}  // namespace
}  // namespace lagwise
