#include "lagwise/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lagwise/core/errors.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/encodings/encoding_text.h"
#include "lagwise/models/model.h"
#include "lagwise/train/run.h"
#include "lagwise/train/testing_trainer.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const RegisterTask registered({
    .name = "counting",
    .summary = "for tests",
    .metric = "nats per token",
    .make = [](const TaskConfig& config, Spec& options) -> std::unique_ptr<Task> {
      return std::make_unique<OddlySplitTask>(config, options);
    },
});

TEST(Trainer, LearnsAndLeavesWhatARunHolds) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.train.steps = 150, recipe.model.dropout = 0;
  train(recipe, scratch / "run");
  const auto all = lines(scratch / "run");
  EXPECT_GT(all.front()["loss"].get<double>(), 1.8);  // a guess costs ln 8 = 2.08
  std::vector<double> values;
  for (const auto& line : all)
    if (line.contains("split")) values.push_back(line["value"].get<double>());
  ASSERT_EQ(values.size(), 19u);  // every 8 steps, and at the end
  EXPECT_LT(values.back(), 0.9);  // the best there is: ln 2 = 0.69
  EXPECT_EQ(all.back()["done"], true);
  EXPECT_EQ(all.back()["step"], 150);
  EXPECT_GT(all.back()["peak_bytes"].get<int64_t>(), 1 << 20);

  const auto about = nlohmann::json::parse(contents(scratch / "run/run.json"));
  EXPECT_EQ(about["threads"], 1);
  EXPECT_EQ(about["model"]["vocabulary"], 8);
  EXPECT_GT(about["parameters"].get<int64_t>(), 1000);
  EXPECT_EQ(recipe_text(read_recipe(scratch / "run/recipe.toml")), recipe_text(recipe));

  const lagwise::Run run = open_run(scratch / "run", Which::last);
  EXPECT_EQ(run.step, 150);
  EXPECT_FALSE(run.model->is_training());
  const Evaluation again = evaluate(*run.model, *run.task, run.draw(), "valid", 0, 4);
  EXPECT_NEAR(again.value, values.back(), 1e-5);
}

TEST(Trainer, LearnsAsWellInBf16AndGoesOnAfterAStop) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.train.steps = 60, recipe.model.dropout = 0;
  const auto last_loss = [&](const std::string& precision, const std::string& run) {
    recipe.train.precision = precision;
    train(recipe, scratch / run);
    double loss = 0;
    for (const auto& line : lines(scratch / run))
      if (line.contains("loss")) loss = line["loss"].get<double>();
    return loss;
  };
  const double full = last_loss("f32", "full"), half = last_loss("bf16", "half");
  EXPECT_NE(half, full);
  EXPECT_NEAR(half, full, 0.02 * full);

  train_until(recipe, scratch / "stopped", 25);
  EXPECT_EQ(last_loss("bf16", "stopped"), half);
}

/// Puts `now` for `then` wherever it stands in a run's texts.
void rewrite_run(const std::string& folder, const std::string& then,
                 const std::string& now) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json" && entry.path().extension() != ".toml")
      continue;
    std::string text = contents(entry.path().string());
    for (size_t at; (at = text.find(then)) != text.npos;)
      text.replace(at, then.size(), now);
    const size_t hash = text.find(",\n \"fnv1a\"");  // an older state.json has none
    if (hash != text.npos) text = text.substr(0, hash) + "\n}\n";
    std::ofstream(entry.path()) << text;
  }
}

// An older version kept encodings as they were written, and lrpe had other defaults.
TEST(Trainer, KeepsTheMeaningOfAnOlderRun) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.model.encoding = "lrpe:angles=fixed,p=identity";
  train(recipe, scratch / "whole");
  train_until(recipe, scratch / "older", 8);
  rewrite_run(scratch / "older", full_encoding(recipe.model.encoding), "lrpe");
  EXPECT_THAT(contents(scratch / "older/recipe.toml"),
              HasSubstr("\nencoding = \"lrpe\"\n"));

  const lagwise::Run run = open_run(scratch / "older", Which::last);
  EXPECT_EQ(run.model->config().encoding, "lrpe:angles=fixed,p=identity");
  EXPECT_EQ(run.recipe.model.encoding, "lrpe:angles=fixed,p=identity");

  Recipe today = recipe;
  today.model.encoding = "lrpe";
  EXPECT_THAT(message<std::invalid_argument>([&] { train(today, scratch / "older"); }),
              HasSubstr("model.encoding = \"lrpe\", was "
                        "\"lrpe:angles=fixed,p=identity\""));
  train(recipe, scratch / "older");
  EXPECT_EQ(model_bytes(scratch / "older", "00000030"),
            model_bytes(scratch / "whole", "00000030"));
}

TEST(Trainer, EndsWithTheSameBitsAfterStopsAtAnyStep) {
  const TempFolder scratch;
  train(tiny(), scratch / "whole");
  train_until(tiny(), scratch / "parts", 1);
  train_until(tiny(), scratch / "parts", 7);
  train_until(tiny(), scratch / "parts", 8);
  train_until(tiny(), scratch / "parts", 20);
  train(tiny(), scratch / "parts");
  EXPECT_EQ(model_bytes(scratch / "whole", "00000030"),
            model_bytes(scratch / "parts", "00000030"));
  EXPECT_EQ(contents(scratch / "whole/checkpoints/00000030/optimizer.safetensors"),
            contents(scratch / "parts/checkpoints/00000030/optimizer.safetensors"));
  // The lines say the same too, but for times.
  const auto strip = [](std::vector<nlohmann::json> all) {
    for (auto& line : all)
      for (const char* key : {"seconds", "tokens_per_second", "peak_bytes"})
        line.erase(key);
    return all;
  };
  EXPECT_EQ(strip(lines(scratch / "whole")), strip(lines(scratch / "parts")));
}

TEST(Trainer, KeepsTheNewestAndTheBestCheckpointAlone) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.train.lr = 1e-30;  // nothing is learnt; noise decides which is best
  recipe.train.steps = 20, recipe.train.eval_every = 2;
  recipe.train.checkpoint_every = 4;
  train(recipe, scratch / "run");
  const Checkpoints checkpoints(scratch / "run");
  const auto steps = checkpoints.steps();
  const TrainerState last = checkpoints.read_state(20);
  ASSERT_TRUE(last.best);
  double best = 1e9;
  int64_t at = 0;
  for (const auto& line : lines(scratch / "run"))
    if (line.contains("split") && line["value"] < best)
      best = line["value"], at = line["step"];
  EXPECT_EQ(last.best->step, at);
  EXPECT_EQ(last.best->value, best);
  if (at == 20)
    EXPECT_EQ(steps, std::vector<int64_t>{20});
  else
    EXPECT_EQ(steps, (std::vector<int64_t>{at, 20}));
  EXPECT_EQ(open_run(scratch / "run").step, at);
}

TEST(Trainer, KnowsThatItIsFinishedAndGoesOnIfAskedForMore) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.train.schedule = "constant", recipe.train.steps = 10;
  train(recipe, scratch / "run");
  EXPECT_TRUE(Trainer(recipe, scratch / "run").finished());
  recipe.train.steps = 15;
  EXPECT_FALSE(Trainer(recipe, scratch / "run").finished());
  train(recipe, scratch / "run");
  train(recipe, scratch / "whole");
  EXPECT_EQ(model_bytes(scratch / "whole", "00000015"),
            model_bytes(scratch / "run", "00000015"));
  int ends = 0;
  for (const auto& line : lines(scratch / "run")) ends += line.contains("done");
  EXPECT_EQ(ends, 1);
}

TEST(Trainer, RefusesToGoOnWithAnotherRecipe) {
  const TempFolder scratch;
  train_until(tiny(), scratch / "run", 2);
  Recipe other = tiny();
  other.train.lr = 0.5, other.model.encoding = "none", other.train.log_every = 1;
  EXPECT_EQ(message<std::invalid_argument>([&] { Trainer(other, scratch / "run"); }),
            "a run with another recipe is in " + scratch / "run" +
                ": model.encoding = \"none\", was \"sine_spe:realizations=4,sines=2\"; "
                "train.lr = 0.5, was 0.01 (--out names another folder, --fresh begins "
                "anew)");
  other = tiny();
  other.train.steps = 31;
  EXPECT_THAT(message<std::invalid_argument>([&] { Trainer(other, scratch / "run"); }),
              HasSubstr("train.steps = 31, was 30"));
  TrainerOptions fresh;
  fresh.fresh = true;
  EXPECT_EQ(Trainer(other, scratch / "run", fresh).step(), 0);
  train_until(other, scratch / "run", 2);
}

TEST(Trainer, RefusesToGoOnWithOtherData) {
  const TempFolder scratch;
  train_until(tiny(), scratch / "run", 2);
  const std::string file = scratch / "run/checkpoints/00000002/state.json";
  auto state = nlohmann::json::parse(contents(file));
  state["data_hash"] = "0123456789abcdef";
  state.erase("fnv1a");
  lagwise::testing::put(file, state.dump());
  EXPECT_EQ(message<DataError>([&] { Trainer(tiny(), scratch / "run"); }),
            scratch / "run" +
                ": expected the data the run began with, hash 0123456789abcdef, but "
                "data.path now has 0000000000004e20");
}

TEST(Trainer, IsAloneInItsFolder) {
  const TempFolder scratch;
  const Trainer first(tiny(), scratch / "run");
  EXPECT_EQ(message<std::runtime_error>([&] { Trainer(tiny(), scratch / "run"); }),
            "another process is training in " + scratch / "run");
}

TEST(Trainer, SaysWhereNumbersStoppedBeingFinite) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.train.lr = 1e30, recipe.train.warmup = 0;
  recipe.train.checkpoint_every = 1, recipe.train.eval_every = 0;
  EXPECT_THAT(message<Diverged>([&] { train(recipe, scratch / "run"); }),
              HasSubstr("is not finite at step"));

  // One weight of infinity: the way there is known.
  TrainListener nobody;
  Trainer trainer(tiny(), scratch / "layer");
  for (auto& parameter : trainer.model().named_parameters())
    if (parameter.key() == "layers.0.attn.v_proj.weight") {
      const at::NoGradGuard by_hand;
      parameter.value().fill_(3e38f);
    }
  EXPECT_THAT(message<Diverged>([&] { trainer.run(nobody); }),
              AllOf(StartsWith("the loss is not finite at step 1, first in "
                               "layers.0.attn.v_proj; last good checkpoint: none"),
                    HasSubstr("a smaller train.lr")));
}

TEST(Trainer, KeepsTheLastCheckpointWhenTheDiskIsFull) {
  const TempFolder scratch;
  Recipe recipe = tiny();
  recipe.train.checkpoint_every = 5, recipe.train.eval_every = 0;
  bool full = false;
  TrainerOptions options;
  options.calls.write = [&](int file, const void* bytes, size_t count) -> ssize_t {
    if (full && count > 100) {
      errno = ENOSPC;
      return -1;
    }
    return ::write(file, bytes, count);
  };
  struct Fills : TrainListener {
    explicit Fills(bool& full) : full(full) {}
    void saved(int64_t step, const std::string&) override { full = step >= 10; }
    bool& full;
  } fills(full);
  Trainer trainer(recipe, scratch / "run", options);
  EXPECT_THAT(message<std::runtime_error>([&] { trainer.run(fills); }),
              AllOf(HasSubstr("No space left on device"),
                    HasSubstr("checkpoints/00000010 still stands")));
  EXPECT_EQ(Checkpoints(scratch / "run").steps(), std::vector<int64_t>{10});
  EXPECT_EQ(open_run(scratch / "run").step, 10);
}

}  // namespace
}  // namespace lagwise
