// What a masked model does once it is trained: fills gaps, and is judged token by token.

#include "lagwise/train/filling.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lagwise/models/model.h"
#include "lagwise/train/pseudo_perplexity.h"
#include "lagwise/train/run.h"
#include "lagwise/train/testing_trainer.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

constexpr int64_t kHidden = 256;  // the mask of bytes

/// Knows that a, b, c and d follow each other for ever.
struct MaskedRun : ::testing::Test {
  static void SetUpTestSuite() {
    folder = new TempFolder;
    std::string text;
    for (int i = 0; i < 500; ++i) text += "abcd";
    put(*folder / "a.txt", text);
    Recipe recipe;
    recipe.model.layers = 1, recipe.model.dim = 32, recipe.model.heads = 2;
    recipe.model.encoding = "rope:layout=half";
    recipe.data = {.task = "masked:rate=0.3", .path = *folder / "a.txt", .length = 12};
    recipe.train.steps = 400, recipe.train.batch = 16, recipe.train.warmup = 5;
    recipe.train.lr = 1e-2, recipe.train.threads = 1;
    train(recipe, *folder / "run");
  }
  static void TearDownTestSuite() {
    delete folder;
    folder = nullptr;
  }
  static inline TempFolder* folder = nullptr;
  const lagwise::Run run = open_run(*folder / "run");
};

std::string filled_text(const std::vector<int64_t>& tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST_F(MaskedRun, LearnsWhatIsHidden) {
  const Evaluation found = evaluate(*run.model, *run.task, run.draw(), "test");
  EXPECT_LT(found.value, 0.69);  // half of what a guess costs, ln 4 = 1.39
  EXPECT_GT(found.more.at("accuracy"), 0.85);
}

TEST_F(MaskedRun, FillsAGapWithWhatBelongsThere) {
  std::vector<int64_t> tokens = {'c', 'd', 'a', kHidden, 'c', 'd', 'a', 'b'};
  const auto gaps = fill_gaps(*run.model, run.draw(), tokens, 3);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].position, 3);
  EXPECT_EQ(filled_text(tokens), "cdabcdab");
  ASSERT_EQ(gaps[0].candidates.size(), 3u);
  EXPECT_EQ(gaps[0].candidates[0].token, 'b');
  EXPECT_GT(gaps[0].candidates[0].probability, gaps[0].candidates[1].probability);
  EXPECT_GE(gaps[0].candidates[1].probability, gaps[0].candidates[2].probability);
}

TEST_F(MaskedRun, GivesCandidatesTheProbabilitiesOfTheModel) {
  std::vector<int64_t> tokens = {'c', 'd', kHidden, 'b'};
  Batch batch;
  batch.tokens = at::tensor(tokens, at::kLong).unsqueeze(0);
  const at::Tensor want = at::softmax(
      run.model->logits(batch, run.draw()).detach()[0][2].to(at::kDouble), -1);
  const auto gaps = fill_gaps(*run.model, run.draw(), tokens, 1000);
  ASSERT_EQ(gaps[0].candidates.size(), 256u);  // any byte, never the mask
  double sum = 0;
  for (const Candidate& one : gaps[0].candidates) {
    EXPECT_NEAR(one.probability, want[one.token].item<double>(), 1e-6);
    sum += one.probability;
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST_F(MaskedRun, FillsSeveralGapsThatSuitEachOther) {
  std::vector<int64_t> tokens = {'a', kHidden, 'c', 'd', kHidden, 'b', kHidden, 'd'};
  const auto gaps = fill_gaps(*run.model, run.draw(), tokens, 2);
  EXPECT_EQ(filled_text(tokens), "abcdabcd");
  ASSERT_EQ(gaps.size(), 3u);
  EXPECT_EQ(gaps[0].position, 1);
  EXPECT_EQ(gaps[1].position, 4);
  EXPECT_EQ(gaps[2].position, 6);
}

TEST_F(MaskedRun, SaysWhatItCannotFill) {
  std::vector<int64_t> tokens = {'a', 'b'};
  EXPECT_THAT(message<std::invalid_argument>(
                  [&] { fill_gaps(*run.model, run.draw(), tokens, 1); }),
              HasSubstr("expected a gap to fill"));
  ModelConfig other = run.model_config();
  other.model = "decoder_lm";
  const auto decoder = make_model(other);
  EXPECT_THAT(
      message<std::invalid_argument>([&] { fill_gaps(*decoder, {}, tokens, 1); }),
      HasSubstr("encoder_lm, got decoder_lm"));
}

/// Against the definition, one token at a time.
TEST_F(MaskedRun, HasThePseudoPerplexityOfItsDefinition) {
  const PseudoPerplexity found =
      pseudo_perplexity(*run.model, *run.task, run.draw(), "test", 2, {}, 5);
  EXPECT_EQ(found.windows, 2);
  EXPECT_EQ(found.tokens, 24);
  double sum = 0;
  int64_t right = 0;
  const int64_t size = run.task->size("test");
  for (const int64_t window : {int64_t{0}, size / 2}) {
    const std::vector<int64_t> tokens = run.task->stream("test", window * 12, 12);
    for (size_t i = 0; i < 12; ++i) {
      std::vector<int64_t> hidden = tokens;
      hidden[i] = kHidden;
      Batch batch;
      batch.tokens = at::tensor(hidden, at::kLong).unsqueeze(0);
      const at::Tensor row =
          run.model->logits(batch, run.draw()).detach()[0][static_cast<int64_t>(i)];
      sum -= at::log_softmax(row.to(at::kDouble), -1)[tokens[i]].item<double>();
      right += row.argmax().item<int64_t>() == tokens[i];
    }
  }
  EXPECT_NEAR(found.loss, sum / 24, 1e-5);
  EXPECT_NEAR(found.perplexity, std::exp(sum / 24), 1e-4);
  EXPECT_EQ(found.right, right);
  EXPECT_LT(found.perplexity, 1.5);
}

TEST_F(MaskedRun, HasNoPseudoPerplexityWithoutAWindow) {
  EXPECT_THAT(message<std::invalid_argument>([&] {
                pseudo_perplexity(*run.model, *run.task, run.draw(), "test", 0);
              }),
              HasSubstr("has no whole window"));
}

}  // namespace
}  // namespace lagwise
