#include "lagwise/train/metrics.h"

#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise {
namespace {

using lagwise::testing::contents;
using lagwise::testing::put;
using lagwise::testing::TempFolder;

TEST(Metrics, GoOnAfterAStepAsIfNothingHadFollowed) {
  const TempFolder scratch;
  const std::string file = scratch / "metrics.jsonl";
  put(file,
      "{\"step\":5,\"loss\":2.5}\n"
      "{\"step\":10,\"split\":\"valid\",\"value\":1.0}\n"
      "{\"step\":11,\"loss\":2.0}\n"
      "{\"step\":10,\"done\":true}\n"
      "{\"step\":1");
  EXPECT_TRUE(ended_at(file, 10));
  EXPECT_FALSE(ended_at(file, 11));
  {
    Metrics metrics(file, 10);
    metrics.add({.step = 11, .loss = 1.5});
    metrics.add_end(12, 3.5, 1000);
    metrics.sync();
  }
  EXPECT_EQ(contents(file),
            "{\"step\":5,\"loss\":2.5}\n"
            "{\"step\":10,\"split\":\"valid\",\"value\":1.0}\n"
            "{\"step\":11,\"loss\":1.5,\"lr\":0.0,\"grad_norm\":0.0,\"tokens\":0,"
            "\"tokens_per_second\":0.0,\"seconds\":0.0}\n"
            "{\"step\":12,\"done\":true,\"seconds\":3.5,\"peak_bytes\":1000}\n");
  EXPECT_TRUE(ended_at(file, 12));
  EXPECT_FALSE(ended_at(scratch / "none", 12));
}

TEST(Metrics, SayThatARunDivergedUntilItGoesOn) {
  const TempFolder scratch;
  const std::string file = scratch / "metrics.jsonl";
  Metrics(file, 0).add_divergence(7, "the loss is not finite");
  EXPECT_EQ(contents(file), "{\"step\":7,\"diverged\":\"the loss is not finite\"}\n");
  const Metrics goes_on(file, 6);
  EXPECT_EQ(contents(file), "");
}

TEST(Metrics, NameTheFurtherFiguresOfAnEvaluation) {
  const TempFolder scratch;
  const std::string file = scratch / "metrics.jsonl";
  Evaluation found;
  found.split = "valid", found.metric = "bits per byte", found.value = 2.0;
  found.loss = 1.5, found.more = {{"word perplexity", 90.0}};
  Metrics(file, 0).add(4, found);
  EXPECT_EQ(contents(file),
            "{\"step\":4,\"split\":\"valid\",\"loss\":1.5,\"metric\":\"bits per byte\","
            "\"value\":2.0,\"word perplexity\":90.0}\n");
}

}  // namespace
}  // namespace lagwise
