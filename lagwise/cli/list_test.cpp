#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "lagwise/attention/feature_map.h"
#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/models/model.h"
#include "lagwise/nn/attention_presets.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/tasks/task.h"

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class Rows>
void expect_rows(const std::string& word, const Rows& rows) {
  const Outcome outcome = lagwise({"list", word});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& row : rows) {
    EXPECT_THAT(outcome.out, HasSubstr("\n  " + std::string(row.name) + " "));
    EXPECT_THAT(outcome.out, HasSubstr(std::string(row.summary)));
  }
}

TEST(ListVerb, PrintsEveryRowOfEachRegistry) {
  expect_rows("attentions", nn::mixers());
  expect_rows("encodings", encodings());
  expect_rows("maps", feature_maps());
  expect_rows("models", models());
  expect_rows("tasks", tasks());
}

TEST(ListVerb, PrintsOptionsWithTheirDefaults) {
  const std::string attentions = lagwise({"list", "attentions"}).out;
  EXPECT_THAT(attentions, HasSubstr("window=0 cache=full|bf16"));
  EXPECT_THAT(attentions, HasSubstr("map=elu1"));
  EXPECT_THAT(attentions, HasSubstr("denominator=auto|none"));
  EXPECT_THAT(lagwise({"list", "maps"}).out, HasSubstr("norms=chi|sqrt_d redraw=1000"));
  EXPECT_THAT(lagwise({"list", "encodings"}).out,
              HasSubstr("layout=<interleaved|half>"));
  const std::string tasks = lagwise({"list", "tasks"}).out;
  EXPECT_THAT(tasks, HasSubstr("train=10000 valid=500 test=1000"));
  EXPECT_THAT(tasks, HasSubstr("patch=1 colour=false"));
  EXPECT_THAT(tasks, HasSubstr("scheme=groove"));
}

TEST(ListVerb, PrintsThePresetsOfAttentionWithTheirPapers) {
  const std::string attentions = lagwise({"list", "attentions"}).out;
  for (const nn::AttentionPreset& preset : nn::attention_presets()) {
    EXPECT_THAT(attentions, HasSubstr("\n  " + std::string(preset.name) + " "));
    EXPECT_THAT(attentions, HasSubstr("\n    = " + std::string(preset.text) + "\n"));
    EXPECT_THAT(attentions, HasSubstr(std::string(preset.paper)));
  }
}

TEST(ListVerb, PrintsAllWithoutAWordWithin100Columns) {
  const Outcome outcome = lagwise({"list"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* heading :
       {"Attentions:", "Positional encodings:", "Feature maps", "Models:", "Tasks:"})
    EXPECT_THAT(outcome.out, HasSubstr(heading));
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 100u) << line;
}

TEST(ListVerb, RefusesAnUnknownWordInOneLine) {
  const Outcome outcome = lagwise({"list", "map"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "lagwise: list: unknown 'map'; did you mean 'maps'? expected one of "
            "attentions, encodings, maps, models, tasks\n");
}

}  // namespace
}  // namespace lagwise::cli
