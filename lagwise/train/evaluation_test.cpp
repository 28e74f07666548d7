#include "lagwise/train/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/models/model.h"
#include "lagwise/train/testing_positions.h"

namespace lagwise {
namespace {

using ::testing::ElementsAre;
using namespace lagwise::testing;

/// Writes down which examples it was asked for.
class Asked : public LetterStream {
 public:
  using LetterStream::LetterStream;
  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length = 0) const override {
    for (int64_t i = begin; i < end; ++i) seen.push_back(i);
    return LetterStream::eval_batch(split, begin, end, length);
  }
  mutable std::vector<int64_t> seen;
};

std::vector<int64_t> judged(int64_t examples, int64_t batch) {
  const auto model = make_model(small_model("decoder_lm", "none", kNormalised));
  const Asked task(10 * 8 + 1);  // 10 examples of 8
  const Evaluation found = evaluate(*model, task, {}, "valid", examples, batch);
  EXPECT_EQ(found.examples, static_cast<int64_t>(task.seen.size()));
  return task.seen;
}

TEST(Evaluation, SpreadsFewExamplesOverTheSplit) {
  EXPECT_THAT(judged(4, 2), ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(judged(5, 2), ElementsAre(0, 1, 4, 5, 9));
  EXPECT_THAT(judged(2, 2), ElementsAre(0, 1));
}

TEST(Evaluation, JudgesEveryExampleOnce) {
  for (const int64_t examples : {0, 10, 99})
    EXPECT_THAT(judged(examples, 3), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

}  // namespace
}  // namespace lagwise
