// Fine-tuning: a masked model, and a classifier that begins with its weights.

#include "lagwise/train/pretrained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lagwise/models/model.h"
#include "lagwise/train/run.h"
#include "lagwise/train/testing_trainer.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

struct Heard : TrainListener {
  void noted(const std::string& line) override { notes += line + "\n"; }
  std::string notes;
};

/// A masked model of bytes after a few steps, and the recipe of a classifier.
struct FineTuning : ::testing::Test {
  const TempFolder scratch;
  const std::string before = scratch / "before", run = scratch / "run";
  Recipe masked, text;

  FineTuning() {
    std::string table = "text\tlabel\n", all;
    for (int i = 0; i < 60; ++i) {
      all += i % 3 ? "aaab baaa\n" : "zzyz zyzz\n";
      table += i % 2 ? "aab aaa\tgood\n" : "zyz zzz\tbad\n";
    }
    put(scratch / "a.txt", all);
    put(scratch / "t.tsv", table);
    masked.model.layers = 2, masked.model.dim = 16, masked.model.heads = 2;
    masked.model.encoding = "sine_spe:realizations=4,sines=2";
    masked.data = {.task = "masked", .path = scratch / "a.txt", .length = 12};
    masked.train.steps = 8, masked.train.batch = 4, masked.train.warmup = 1;
    masked.train.lr = 1e-2, masked.train.threads = 1;
    masked.train.eval_every = 4, masked.train.eval_examples = 2;
    text = masked;
    text.data.task = "text", text.data.path = scratch / "t.tsv";
    text.train.from = before, text.train.seed = 3;
    train(masked, before);
  }

  std::string refused() {
    return message<std::invalid_argument>([&] { Trainer(text, scratch / "no"); });
  }
};

std::map<std::string, at::Tensor> parameters_of(const Model& model) {
  std::map<std::string, at::Tensor> all;
  for (const auto& one : model.named_parameters())
    all[one.key()] = one.value().detach().clone();
  return all;
}

TEST_F(FineTuning, BeginsWithTheWeightsOfTheSameNames) {
  Trainer trainer(text, run);
  const auto now = parameters_of(trainer.model());
  const auto then = parameters_of(*open_run(before).model);
  Recipe alone = text;
  alone.train.from = "";
  const auto anew = parameters_of(Trainer(alone, scratch / "alone").model());
  size_t taken = 0;
  for (const auto& [name, tensor] : now) {
    SCOPED_TRACE(name);
    if (name.starts_with("head.")) {
      EXPECT_TRUE(tensor.equal(anew.at(name)));
      continue;
    }
    const at::Tensor& was = then.at(name);
    EXPECT_TRUE(tensor.equal(name == "embed.weight" ? was.narrow(0, 0, 256) : was));
    ++taken;
  }
  EXPECT_EQ(taken, now.size() - 2);
  EXPECT_FALSE(now.at("embed.weight").equal(anew.at("embed.weight")));
}

TEST_F(FineTuning, SaysWhatItTookAndKeepsIt) {
  Heard heard;
  Trainer(text, run).run(heard);
  const std::string step = std::to_string(open_run(before).step);
  EXPECT_THAT(heard.notes, HasSubstr("tensors of " + before + ", step " + step));
  EXPECT_THAT(heard.notes,
              HasSubstr("partly: embed.weight [256, 16]: 256 rows of 257"));
  EXPECT_THAT(heard.notes, HasSubstr("begun anew: head.out.weight [2, 16], "
                                     "head.out.bias [2]"));
  const json about = json::parse(contents(run + "/run.json"));
  EXPECT_EQ(about["origin"]["from"], before);
  EXPECT_EQ(about["origin"]["anew"].size(), 2u);
  EXPECT_THAT(contents(run + "/recipe.toml"), HasSubstr("from = \"" + before + "\""));
}

TEST_F(FineTuning, GoesOnWithoutTheRunItCameFrom) {
  train(text, run);
  train_until(text, scratch / "stopped", 5);
  fs::remove_all(before);
  train(text, scratch / "stopped");
  EXPECT_EQ(model_bytes(run, "00000008"), model_bytes(scratch / "stopped", "00000008"));
  EXPECT_EQ(json::parse(contents(run + "/run.json"))["origin"],
            json::parse(contents(scratch / "stopped/run.json"))["origin"]);
}

TEST_F(FineTuning, TakesOneCheckpointToo) {
  text.train.from = before + "/checkpoints/00000008";
  const auto now = parameters_of(Trainer(text, run).model());
  const auto then = parameters_of(*open_run(before, Which::last).model);
  EXPECT_TRUE(now.at("norm.weight").equal(then.at("norm.weight")));
}

TEST_F(FineTuning, GoesOnTrainingTheSameTaskWithItsHead) {
  masked.model.tied = false;
  train(masked, scratch / "untied");
  masked.train.from = scratch / "untied", masked.train.seed = 5;
  const lagwise::Run then = open_run(scratch / "untied");
  Trainer trainer(masked, run);
  const auto loss = [&](Model& model) {
    return evaluate(model, *then.task, {1, 2}, "valid", 0, 4).loss;
  };
  EXPECT_DOUBLE_EQ(loss(trainer.model()), loss(*then.model));
}

TEST_F(FineTuning, BeginsPositionsAnewWhereTheEncodingWasChanged) {
  text.model.encoding = "learned:max=20";
  Heard heard;
  Trainer(text, run).run(heard);
  EXPECT_THAT(
      heard.notes,
      AllOf(HasSubstr("left there: "), HasSubstr("layers.0.attn.pos.gate"),
            HasSubstr("begun anew: pos."), HasSubstr("changed: model.encoding")));
}

TEST_F(FineTuning, RefusesOtherSizesByTheirKeys) {
  text.model.dim = 32, text.model.heads = 4;
  const std::string start =
      "train.from = " + before + ": expected a model of the same sizes, but model.";
  EXPECT_EQ(refused(),
            start + "dim = 16 there, 32 here; model.heads = 2 there, 4 here");
  text.model = masked.model, text.model.feed_forward = 32;
  EXPECT_EQ(refused(), start + "feed_forward = 64 there, 32 here");
  EXPECT_FALSE(fs::exists(scratch / "no"));
}

TEST_F(FineTuning, RefusesTokensThatMeanSomethingElse) {
  text.data = {.task = "listops:train=20,valid=4,test=4", .length = 40};
  EXPECT_THAT(refused(), AllOf(HasSubstr("its tokens are bytes, those of the data "),
                               HasSubstr("symbols")));
}

TEST_F(FineTuning, RefusesWhatIsNoRun) {
  const auto wrong = [&](const std::string& from) {
    text.train.from = from;
    return message<DataError>([&] { Trainer(text, scratch / "no"); });
  };
  EXPECT_EQ(wrong(scratch / "nowhere"),
            scratch / "nowhere" +
                ": expected the folder of a run, or of one of its checkpoints "
                "(train.from)");
  const std::string file = before + "/checkpoints/00000008/model.safetensors";
  std::string bytes = contents(file);
  bytes[bytes.size() - 3] ^= 1;
  put(file, bytes);
  EXPECT_THAT(wrong(before + "/checkpoints/00000008"), HasSubstr("it is damaged"));
}

TEST_F(FineTuning, RefusesToBeginWithItself) {
  train(text, run);
  text.train.from = run;
  TrainerOptions fresh;
  fresh.fresh = true;
  EXPECT_THAT(message<std::invalid_argument>([&] { Trainer(text, run, fresh); }),
              HasSubstr("expected another run than the one to train"));
  EXPECT_TRUE(fs::exists(run + "/recipe.toml"));
}

TEST_F(FineTuning, ForgetsNothingForAFreshStartThatCannotBe) {
  train(text, run);
  text.train.from = scratch / "nowhere";
  TrainerOptions fresh;
  fresh.fresh = true;
  EXPECT_THROW(Trainer(text, run, fresh), DataError);
  EXPECT_EQ(open_run(run, Which::last).step, 8);
}

TEST_F(FineTuning, KeepsTheBitsOfWhatIsFrozen) {
  text.train.freeze = "embed.*, layers.0.*";
  text.train.weight_decay = 0.5;
  Heard heard;
  Trainer(text, run).run(heard);
  const auto now = parameters_of(*open_run(run, Which::last).model);
  const auto then = parameters_of(*open_run(before).model);
  for (const auto& [name, tensor] : now) {
    SCOPED_TRACE(name);
    if (name == "embed.weight") {
      EXPECT_TRUE(tensor.equal(then.at(name).narrow(0, 0, 256)));
    } else if (name.starts_with("layers.0.")) {
      EXPECT_TRUE(tensor.equal(then.at(name)));
    } else if (name.starts_with("layers.1.") && name.ends_with("proj.weight")) {
      EXPECT_FALSE(tensor.equal(then.at(name)));
    }
  }
  EXPECT_THAT(heard.notes, HasSubstr("frozen: "));
  const json about = json::parse(contents(run + "/run.json"));
  EXPECT_GT(about["frozen"].get<int64_t>(), 4096);
  EXPECT_LT(about["frozen"].get<int64_t>(), about["parameters"].get<int64_t>());

  train_until(text, scratch / "stopped", 5);
  train(text, scratch / "stopped");
  EXPECT_EQ(model_bytes(run, "00000008"), model_bytes(scratch / "stopped", "00000008"));
}

TEST_F(FineTuning, RefusesPatternsOfNothingAndOfEverything) {
  text.train.freeze = "embed.*,layer.*";
  EXPECT_THAT(refused(),
              HasSubstr("train.freeze: expected patterns of parameters, such "
                        "as embed.weight, "));
  EXPECT_THAT(refused(), HasSubstr("'layer.*' matches none"));
  text.train.freeze = "*";
  EXPECT_THAT(refused(), HasSubstr("'*' matches every parameter"));
}

/// The gradients of what is left are those that it had with all others.
TEST_F(FineTuning, TrainsTheRestAsBefore) {
  text.train.steps = 1, text.train.clip = 0, text.train.weight_decay = 0;
  train(text, scratch / "all");
  text.train.freeze = "embed.*,layers.0.*";
  train(text, run);
  const auto all = parameters_of(*open_run(scratch / "all").model);
  for (const auto& [name, tensor] : parameters_of(*open_run(run).model)) {
    if (name.starts_with("embed.") || name.starts_with("layers.0.")) continue;
    EXPECT_TRUE(at::allclose(tensor, all.at(name), 1e-5, 1e-6)) << name;
  }
}

}  // namespace
}  // namespace lagwise
