#include "lagwise/train/answers.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/models/model.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

constexpr int64_t kMark = 256;

/// Writes what it hears, then ends; or, of a source with a `!`, never ends.
class Echo : public Model {
 public:
  using Model::Model;

  struct Heard : DecodingState {
    int64_t bytes() const override { return 0; }
    void reorder(const at::Tensor&) override {}
    at::Tensor source, lengths;
    int64_t taken = 0;
  };

  at::Tensor logits(const Batch&, const Draw&) override { return {}; }

  std::unique_ptr<DecodingState> start(int64_t, const Draw&,
                                       const Batch* source) override {
    auto state = std::make_unique<Heard>();
    state->source = source->source, state->lengths = source->source_lengths;
    return state;
  }

  at::Tensor extend(DecodingState& state, const at::Tensor& tokens,
                    const at::Tensor&) override {
    auto& heard = static_cast<Heard&>(state);
    if (heard.taken == 0) {
      EXPECT_EQ(tokens[0][0].item<int64_t>(), kMark);
    }
    at::Tensor logits = at::full({tokens.size(0), kMark + 1}, -1.0, at::kFloat);
    for (int64_t b = 0; b < tokens.size(0); ++b) {
      const at::Tensor source = heard.source[b];
      const int64_t many =
          heard.lengths.defined() ? heard.lengths[b].item<int64_t>() : source.size(0);
      const bool endless = source[0].item<int64_t>() == '!';
      logits[b][heard.taken < many || endless
                    ? source[heard.taken % many].item<int64_t>()
                    : kMark] = 1;
    }
    heard.taken += tokens.size(1);
    return logits;
  }
};

struct WrittenAnswers : ::testing::Test {
  const TempFolder folder;

  std::unique_ptr<Task> task(const std::string& rows) const {
    put(folder / "a.tsv", "source\ttarget\n" + rows);
    return make_task(
        {.task = "pairs:valid=0,test=0", .path = folder / "a.tsv", .length = 6});
  }
  static Answers answers(const Task& task, int64_t examples = 0, int64_t batch = 64,
                         const std::function<void(double)>& progress = {}) {
    ModelConfig config;
    task.shape(config);
    Echo model(config);
    return write_answers(model, task, {}, "train", examples, batch, progress);
  }
};

TEST_F(WrittenAnswers, AreJudgedWhole) {
  const auto pairs = task("ab\tab\nabcd\tabcx\nc\tc\nd\tdd\n");
  double done = 0;
  const Answers found = answers(*pairs, 0, 3, [&](double now) { done = now; });
  EXPECT_EQ(done, 1);
  ASSERT_EQ(found.all.size(), 4u);
  EXPECT_EQ(found.all[1].source, "abcd");
  EXPECT_EQ(found.all[1].wanted, "abcx");
  EXPECT_EQ(found.all[1].written, "abcd");
  EXPECT_EQ(found.all[3].written, "d");
  EXPECT_EQ(found.exact_match(), 0.5);
  EXPECT_GT(found.chrf(), 40);
  EXPECT_LT(found.chrf(), 100);
  EXPECT_EQ(Answers().exact_match(), 0);
}

TEST_F(WrittenAnswers, EndAtTheTrainingLengthAtTheLatest) {
  EXPECT_EQ(answers(*task("!a\tx\nb\tb\n")).all[0].written, "!a!a!a");
}

TEST_F(WrittenAnswers, AreSpreadOverASplit) {
  const auto pairs = task("a\ta\nb\tb\nc\tc\nd\td\n");
  const Answers found = answers(*pairs, 2, 1);
  ASSERT_EQ(found.all.size(), 2u);
  EXPECT_EQ(found.all[0].source, "a");
  EXPECT_EQ(found.all[1].source, "d");
}

TEST_F(WrittenAnswers, AreOfModelsThatListenAndTasksThatEnd) {
  const auto pairs = task("a\ta\nb\tb\n");
  ModelConfig config;
  pairs->shape(config);
  EXPECT_TRUE(has_answers(*pairs, Echo(config)));
  config.model = "decoder_lm";
  Echo deaf(config);
  EXPECT_FALSE(has_answers(*pairs, deaf));
  try {
    write_answers(deaf, *pairs, {}, "train");
    ADD_FAILURE() << "nothing was refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a task whose examples have answers"));
  }
}

}  // namespace
}  // namespace lagwise
