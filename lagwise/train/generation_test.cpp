#include "lagwise/train/generation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lagwise/models/model.h"
#include "lagwise/train/testing_positions.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

using Tokens = std::vector<int64_t>;

Written write(Model& model, const std::vector<Tokens>& prompts, int64_t length,
              const Sampling& sampling = {.seed = 4}, const EachStep& each = {}) {
  const LetterStream task(50);
  Writing writing;
  writing.prompts = prompts, writing.length = length, writing.sampling = sampling;
  return write_on(model, &task, {}, writing, each);
}

TEST(Generation, EqualsTheFullPassAtEveryToken) {
  const auto model = make_model(short_model());
  const Tokens prompt = {1, 2, 3, 4};
  const Tokens got = write(*model, {prompt}, 40).tokens[0];
  ASSERT_EQ(got.size(), 40U);
  Sampler sampler({.seed = 4}, 0);
  Tokens all = prompt;
  const at::NoGradGuard no_graph;
  for (const int64_t token : got) {
    const at::Tensor seen = at::tensor(all, at::kLong).unsqueeze(0);
    const at::Tensor row = model->logits(batch_of(seen), {})[0][-1].contiguous();
    const std::span<const float> logits(row.data_ptr<float>(), 11);
    ASSERT_EQ(token, sampler.pick(logits, static_cast<int64_t>(all.size())));
    all.push_back(token);
  }
}

TEST(Generation, WritesASampleTheSameAloneAndAmongOthers) {
  for (const char* attention : {kNormalised, "exact"}) {
    const auto model = make_model(short_model("rope:layout=half", attention));
    const Tokens prompt = {5, 0, 9};
    const Written many = write(*model, {prompt, prompt, prompt, prompt}, 100);
    EXPECT_EQ(write(*model, {prompt}, 100).tokens[0], many.tokens[0]);
    EXPECT_EQ(write(*model, {prompt, prompt, prompt}, 100).tokens[2], many.tokens[2]);
    EXPECT_NE(many.tokens[0], many.tokens[1]);
  }
}

TEST(Generation, NeverDrawsWhatItIsToldNotTo) {
  const auto model = make_model(short_model());
  Writing writing;
  writing.prompts = {{1, 2}, {3}}, writing.length = 200;
  const auto count = [&](int64_t token) {
    int64_t found = 0;
    for (const Tokens& tokens : write_on(*model, nullptr, {}, writing).tokens)
      found += std::count(tokens.begin(), tokens.end(), token);
    return found;
  };
  const int64_t common = count(7);
  ASSERT_GT(common, 0);
  writing.never = 7;
  EXPECT_EQ(count(7), 0);
}

TEST(Generation, TakesPromptsOfDifferentLengths) {
  const auto model = make_model(short_model("lrpe"));
  Tokens longer(1500);  // more than one chunk
  for (size_t i = 0; i < longer.size(); ++i)
    longer[i] = static_cast<int64_t>(i * i % 11);
  const std::vector<Tokens> prompts = {{1, 2, 3}, {}, longer};
  const Written together = write(*model, prompts, 20);
  EXPECT_EQ(together.tokens[0], write(*model, {prompts[0]}, 20).tokens[0]);
  const LetterStream task(50);
  for (int64_t i = 1; i < 3; ++i) {
    Writing alone;
    alone.prompts = {prompts[static_cast<size_t>(i)]}, alone.length = 20;
    alone.sampling.seed = 4, alone.first_sample = i;
    EXPECT_EQ(together.tokens[static_cast<size_t>(i)],
              write_on(*model, &task, {}, alone).tokens[0]);
  }
}

TEST(Generation, ContinuesWhatItWroteAsIfItHadNeverStopped) {
  const auto model = make_model(short_model());
  const Tokens whole = write(*model, {{1, 2}}, 60).tokens[0];
  Tokens first = {1, 2};
  first.insert(first.end(), whole.begin(), whole.begin() + 25);
  const Tokens rest = write(*model, {first}, 35).tokens[0];
  EXPECT_EQ(rest, Tokens(whole.begin() + 25, whole.end()));
}

TEST(Generation, KeepsAStateOfOneSizeWithLinearAttention) {
  const auto model = make_model(short_model());
  EXPECT_EQ(write(*model, {{1}}, 10).state_bytes,
            write(*model, {{1}}, 200).state_bytes);
}

TEST(Generation, StopsWhenToldAndWhenNothingIsAsked) {
  const auto model = make_model(short_model());
  int steps = 0;
  const Written some =
      write(*model, {{1}}, 100, {}, [&](const Tokens&) { return ++steps < 7; });
  EXPECT_EQ(some.tokens[0].size(), 7U);
  EXPECT_TRUE(write(*model, {{1}}, 0).tokens[0].empty());
}

TEST(Generation, EndsASampleAfterAStopAndLetsTheOthersGoOn) {
  const auto model = make_model(short_model());
  Writing writing;
  writing.prompts = {{1, 2}, {3}}, writing.length = 60, writing.sampling.seed = 4;
  const Written whole = write_on(*model, nullptr, {}, writing);
  writing.stops = {{whole.tokens[0][10], whole.tokens[0][11]}};
  const Written stopped = write_on(*model, nullptr, {}, writing);
  for (size_t b = 0; b < 2; ++b) {
    const auto found = std::ranges::search(whole.tokens[b], writing.stops[0]);
    EXPECT_EQ(stopped.tokens[b], Tokens(whole.tokens[b].begin(), found.end()));
  }
  EXPECT_LE(stopped.tokens[0].size(), 12U);
}

TEST(Generation, StopsInsideWhatIsNewAlone) {
  const auto model = make_model(short_model());
  Writing writing;
  writing.prompts = {{1, 2}}, writing.length = 5;
  const Tokens first = write_on(*model, nullptr, {}, writing).tokens[0];
  writing.stops = {{2, first[0]}};  // begins in the prompt
  EXPECT_EQ(write_on(*model, nullptr, {}, writing).tokens[0], first);
}

TEST(Generation, TellsHowLikelyTheModelHeldWhatWasDrawn) {
  const auto model = make_model(short_model());
  Writing writing;
  writing.prompts = {{1, 2, 3}}, writing.length = 12;
  writing.sampling = {.temperature = 0.3, .top_k = 2, .repetition_penalty = 1.5};
  EXPECT_TRUE(write_on(*model, nullptr, {}, writing).log_probabilities[0].empty());
  writing.log_probabilities = true;
  const Written got = write_on(*model, nullptr, {}, writing);
  ASSERT_EQ(got.log_probabilities[0].size(), 12U);
  Tokens all = {1, 2, 3};
  const at::NoGradGuard no_graph;
  for (size_t i = 0; i < 12; ++i) {
    const at::Tensor seen = at::tensor(all, at::kLong).unsqueeze(0);
    const at::Tensor p = model->logits(batch_of(seen), {})[0][-1].log_softmax(0);
    const int64_t token = got.tokens[0][i];
    EXPECT_NEAR(got.log_probabilities[0][i], p[token].item<double>(), 1e-5);
    all.push_back(token);
  }
}

TEST(Generation, PenalisesThePromptToo) {
  const auto model = make_model(short_model());
  Writing writing;
  writing.prompts = {{1, 2, 3}}, writing.length = 1;
  writing.sampling.temperature = 0;
  const int64_t likeliest = write_on(*model, nullptr, {}, writing).tokens[0][0];
  writing.prompts = {Tokens(8, likeliest)};
  writing.sampling.repetition_penalty = 1e6;
  EXPECT_NE(write_on(*model, nullptr, {}, writing).tokens[0][0], likeliest);
}

/// 1 2 3 ... 10 and then nothing.
struct Counting : Grammar {
  int32_t last = 0;
  bool legal(int32_t id) const override { return id == last + 1; }
  void advance(int32_t id) override { last = id; }
};

TEST(Generation, FollowsTheGrammarToItsEnd) {
  const auto model = make_model(short_model());
  LetterStream task(50);
  task.make_grammar = []() -> std::unique_ptr<Grammar> {
    return std::make_unique<Counting>();
  };
  Writing writing;
  writing.prompts = {{7, 1, 2}, {}}, writing.length = 100;  // 7 is illegal there
  std::vector<Tokens> steps;
  const Written got = write_on(*model, &task, {}, writing, [&](const Tokens& tokens) {
    steps.push_back(tokens);
    return true;
  });
  EXPECT_EQ(got.tokens[0], (Tokens{3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(got.tokens[1], (Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  ASSERT_EQ(steps.size(), 10U);
  EXPECT_EQ(steps.back(), (Tokens{-1, 10}));
}

}  // namespace
}  // namespace lagwise
