// Training with a past: what is read before a window, and what is learned from it.

#include "lagwise/train/past.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lagwise/train/testing_positions.h"
#include "lagwise/train/testing_trainer.h"

namespace lagwise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace lagwise::testing;

TEST(Past, IsDrawnFromTheListByTheMicroStepAlone) {
  const PastMultiples past("0,0,1,3");
  EXPECT_EQ(past.most(), 3);
  std::map<int64_t, int> drawn;
  for (int64_t step = 0; step < 500; ++step)
    for (int64_t micro_step = 0; micro_step < 4; ++micro_step)
      ++drawn[past.multiple({.seed = 4, .step = step, .micro_step = micro_step})];
  EXPECT_EQ(drawn.size(), 3u);
  EXPECT_NEAR(drawn[0], 1000, 80);
  EXPECT_NEAR(drawn[1], 500, 70);
  EXPECT_NEAR(drawn[3], 500, 70);
  EXPECT_EQ(past.multiple({.seed = 4, .step = 9}),
            PastMultiples("0,0,1,3").multiple({.seed = 4, .step = 9}));
  EXPECT_FALSE(PastMultiples("0").any());
  EXPECT_TRUE(PastMultiples("2").any());
}

TEST(Past, SaysWhatIsLegal) {
  for (const char* wrong : {"", "0,", ",1", "0;1", "-1", "1.5", "0, 1", "2000", "all"})
    EXPECT_EQ(message_of([&] { PastMultiples{wrong}; }),
              "train.past: expected whole numbers from 0 to 1024, parted by commas, "
              "such as 0,0,1,3; got '" +
                  std::string(wrong) + "'");
}

/// 3 rows of 24 tokens of the past and a window of 8.
struct Text {
  at::Tensor tokens = random_tokens(3, 32, 11, 8);
  at::Tensor past() const { return tokens.narrow(1, 0, 24); }
  at::Tensor window() const { return tokens.narrow(1, 24, 8); }
  Batch batch() const {
    Batch batch = batch_of(tokens);
    batch.targets = random_tokens(3, 32, 11, 9);
    return batch;
  }
};

TEST(ReadPast, EqualsReadingTheTextWhole) {
  const Text text;
  const Draw draw{.seed = 3, .step = 7};
  const std::pair<const char*, const char*> subjects[] = {
      {"none", kNormalised},     {"rope:layout=half,decay=alibi", kNormalised},
      {"lrpe", kNormalised},     {"sine_spe", kNormalised},
      {"conv_spe", kNormalised}, {"sinusoidal", kNormalised},
      {"none", "mamba2-like"},   {"rope:layout=half,decay=alibi", "gated_deltanet"}};
  for (const auto& [encoding, attention] : subjects) {
    SCOPED_TRACE(std::string(encoding) + ", " + attention);
    const auto model = make_model(short_model(encoding, attention));
    model->eval();
    const at::Tensor want = model->logits(batch_of(text.tokens), draw).narrow(1, 24, 8);
    for (const int64_t chunk : {8, 5, 100}) {
      const auto state = read_past(*model, text.past(), chunk, draw);
      expect_same(model->logits_after(*state, text.window()), want);
    }
  }
}

TEST(ReadPast, TakesNoMoreMemoryForALongerPast) {
  const auto model = make_model(short_model("rope:layout=half,decay=alibi", kSigned));
  const at::Tensor tokens = random_tokens(2, 400, 11);
  EXPECT_EQ(read_past(*model, tokens.narrow(1, 0, 8), 8, {})->bytes(),
            read_past(*model, tokens, 8, {})->bytes());
}

/// The derivative along all parameters at once, when the state stays what the old
/// parameters made it, by a central difference in f64.
double slope_of_the_window(Model& model, const Text& text,
                           const std::vector<at::Tensor>& direction) {
  const at::NoGradGuard no_graph;
  const auto loss_at = [&](double step) {
    const auto state = read_past(model, text.past(), 8, {});
    const auto move = [&](double by) {
      for (size_t i = 0; i < direction.size(); ++i)
        model.parameters()[i].add_(direction[i], by);
    };
    move(step);
    const Loss loss = cross_entropy(model.logits_after(*state, text.window()),
                                    text.batch().targets.narrow(1, 24, 8));
    move(-step);
    return loss.sum.item<double>();
  };
  return (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
}

TEST(LossAfterPast, HasTheGradientsOfTheWindowAlone) {
  const Text text;
  const std::pair<const char*, const char*> subjects[] = {
      {"rope:layout=half,decay=alibi", kSigned},
      {"lrpe", kSigned},
      {"conv_spe", kSigned},
      {"none", "mamba2-like"},
      {"rope:layout=half,decay=alibi", "gated_deltanet"}};
  for (const auto& [encoding, attention] : subjects) {
    SCOPED_TRACE(std::string(encoding) + ", " + attention);
    const auto model = make_model(short_model(encoding, attention));
    model->to(at::kDouble);
    model->eval();
    loss_after_past(*model, text.batch(), 8, {}).sum.backward();
    expect_gradients(*model);
    std::vector<at::Tensor> direction;
    double want = 0;
    for (const at::Tensor& parameter : model->parameters()) {
      direction.push_back(at::sin(at::arange(parameter.numel(), at::kDouble) + 1)
                              .view(parameter.sizes()));
      want += (parameter.grad() * direction.back()).sum().item<double>();
    }
    const double got = slope_of_the_window(*model, text, direction);
    EXPECT_NEAR(got, want, 1e-5 * std::abs(want));
  }
}

TEST(LossAfterPast, TeachesNothingAboutTokensOfThePast) {
  ModelConfig config = short_model("rope:layout=half,decay=alibi", kSigned);
  config.tied = false;  // else every token is also a possible answer
  const auto model = make_model(config);
  Text text;
  text.past().remainder_(5);            // 0 .. 4
  text.window().remainder_(6).add_(5);  // 5 .. 10
  loss_after_past(*model, text.batch(), 8, {}).sum.backward();
  const at::Tensor embedded = model->named_parameters()["embed.weight"].grad();
  EXPECT_EQ(embedded.slice(0, 0, 5).abs().max().item<double>(), 0);
  EXPECT_GT(embedded.slice(0, 5).abs().max().item<double>(), 0);
}

TEST(LossAfterPast, DropsOutInTheWindowWhileTraining) {
  ModelConfig config = short_model("rope:layout=half,decay=alibi", kSigned);
  config.dropout = 0.5;
  const auto model = make_model(config);
  const Text text;
  const auto loss = [&](int64_t step) {
    return loss_after_past(*model, text.batch(), 8, {.seed = 1, .step = step})
        .sum.item<double>();
  };
  model->train();
  EXPECT_NE(loss(0), loss(1));
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_TRUE(model->is_training());
  model->eval();
  EXPECT_EQ(loss(0), loss(1));
}

std::string refused(const std::string& encoding, const std::string& attention,
                    int64_t tokens = 200) {
  const auto model = make_model(short_model(encoding, attention));
  struct Windows : LetterStream {
    using LetterStream::LetterStream;
    Batch train_windows(int64_t, int64_t, Rows rows, int64_t length) const override {
      return eval_batch("train", rows.begin, rows.end, length);
    }
  };
  const Windows task(tokens);
  return message_of([&] { check_past(*model, task, PastMultiples("0,3"), 8, {}); });
}

TEST(CheckPast, RefusesAStateThatGrows) {
  EXPECT_THAT(refused("rope:layout=half", "exact"),
              HasSubstr("train.past: expected an attention and an encoding with a "
                        "state of constant size, got model.attention = exact"));
  EXPECT_THAT(refused("t5", kNormalised), HasSubstr("model.encoding = t5"));
}

TEST(CheckPast, RefusesAnEncodingThatEnds) {
  EXPECT_THAT(refused("learned:max=30", kNormalised),
              AllOf(StartsWith("train.past: "), HasSubstr("table of 30 positions")));
}

TEST(CheckPast, RefusesATextThatIsTooShort) {
  const TempFolder folder;
  put(folder / "a.txt", std::string(100, 'a'));
  const auto model = make_model(short_model());
  const auto task = make_task(
      {.task = "language:valid=0,test=0", .path = folder / "a.txt", .length = 8});
  EXPECT_THAT(
      message_of([&] { check_past(*model, *task, PastMultiples("12"), 8, {}); }),
      HasSubstr("train.past: language: expected windows below the 100 bytes of "
                "the split train, got 104"));
}

Recipe with_past(const std::string& past) {
  Recipe recipe = tiny();
  recipe.train.past = past;
  return recipe;
}

struct TrainerWithPast : ::testing::Test {
  const TempFolder folder;

  std::string trained(const std::string& name, const Recipe& recipe) const {
    train(recipe, folder / name);
    return model_bytes(folder / name, "00000030");
  }
};

TEST_F(TrainerWithPast, OfZeroIsTrainingWithout) {
  const std::string without = trained("a", tiny());
  EXPECT_EQ(without, trained("b", with_past("0,0")));
  EXPECT_NE(without, trained("c", with_past("0,2")));
  EXPECT_FALSE(lines(folder / "b")[0].contains("tokens_read"));
}

TEST_F(TrainerWithPast, GoesOnWithTheSameBits) {
  const Recipe recipe = with_past("0,0,1,3");
  const std::string whole = trained("whole", recipe);
  train_until(recipe, folder / "cut", 11);
  train_until(recipe, folder / "cut", 17);
  EXPECT_EQ(whole, trained("cut", recipe));
  const auto counted = [&](const char* name) {
    for (const auto& line : lines(folder / name))
      if (line["step"] == 30 && line.contains("tokens_read")) return line;
    return nlohmann::json();
  };
  // 30 steps of 2 micro-steps of 4 windows of 12 tokens.
  EXPECT_EQ(counted("whole")["tokens"], 30 * 2 * 4 * 12);
  int64_t read = 0;
  const PastMultiples past("0,0,1,3");
  for (int64_t step = 0; step < 30; ++step)
    for (int64_t micro_step = 0; micro_step < 2; ++micro_step)
      read += int64_t{4} * 12 *
              past.multiple(
                  {.seed = recipe.train.seed, .step = step, .micro_step = micro_step});
  EXPECT_EQ(counted("whole")["tokens_read"], read);
  EXPECT_EQ(counted("cut")["tokens_read"], read);
}

TEST_F(TrainerWithPast, IsRefusedByTasksThatAreNoStream) {
  Recipe recipe = with_past("0,1");
  recipe.data.task = "recall:pairs=2,symbols=4";
  EXPECT_THAT(message_of([&] { Trainer(recipe, folder / "a"); }),
              HasSubstr("train.past: this task is no stream of tokens"));
  recipe = with_past("0,x");
  EXPECT_THAT(message_of([&] { Trainer(recipe, folder / "a"); }),
              HasSubstr("got '0,x'"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

}  // namespace
}  // namespace lagwise
