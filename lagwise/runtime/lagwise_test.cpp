#include "lagwise/runtime/lagwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "lagwise/core/line_vector.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/runtime/testing_model.h"

namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

struct CModel {
  CModel() : bytes(small_model_bytes()) {
    model = lagwise_open_memory(bytes.data(), bytes.size(), nullptr, 0);
  }
  ~CModel() { lagwise_close(model); }
  lagwise::LineVector<uint8_t> bytes;
  lagwise_model* model;
};

std::vector<float> logits_of(const CModel& m, const lagwise_state* state) {
  const float* const logits = lagwise_logits(state);
  return {logits, logits + lagwise_vocabulary(m.model)};
}

TEST(LagwiseInC, PlaysOn) {
  const CModel m;
  ASSERT_NE(m.model, nullptr);
  EXPECT_EQ(lagwise_vocabulary(m.model), 21);
  EXPECT_THAT(lagwise_words(m.model), HasSubstr("language"));
  EXPECT_EQ(lagwise_set_threads(m.model, 2), 0);
  EXPECT_NE(lagwise_set_threads(m.model, 0), 0);
  lagwise_state* const state = lagwise_start(m.model);
  EXPECT_EQ(lagwise_logits(state), nullptr);
  lagwise_sampling sampling = lagwise_sampling_default();
  EXPECT_EQ(lagwise_draw(m.model, state, &sampling), -1);
  const int64_t prompt[] = {1, 2, 3};
  EXPECT_EQ(lagwise_prefill(m.model, state, prompt, 3), 0);
  sampling.temperature = 0;
  for (int i = 0; i < 10; ++i) {
    const std::vector<float> logits = logits_of(m, state);
    const int64_t token = lagwise_draw(m.model, state, &sampling);
    EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
    EXPECT_EQ(lagwise_step(m.model, state, token), 0);
  }
  EXPECT_EQ(lagwise_position(state), 13);
  sampling.top_p = 7;
  EXPECT_EQ(lagwise_draw(m.model, state, &sampling), -1);
  lagwise_end(state);
}

TEST(LagwiseInC, ChangesNothingWhereATokenIsWrong) {
  const CModel m;
  lagwise_state* const state = lagwise_start(m.model);
  const int64_t wrong[] = {1, 21};
  EXPECT_NE(lagwise_prefill(m.model, state, wrong, 2), 0);
  EXPECT_NE(lagwise_step(m.model, state, -1), 0);
  lagwise_state* const both[] = {state, state};
  EXPECT_NE(lagwise_step_many(m.model, both, wrong, 2), 0);
  EXPECT_EQ(lagwise_position(state), 0);
  EXPECT_EQ(lagwise_prefill(m.model, state, nullptr, 0), 0);
  lagwise_end(state);
}

TEST(LagwiseInC, SavesLoadsAndForks) {
  const TempFolder folder;
  const CModel m;
  char why[200] = "";
  lagwise_state* const state = lagwise_start(m.model);
  const int64_t text[] = {5, 6, 7, 8};
  lagwise_prefill(m.model, state, text, 4);
  const std::string file = folder / "state";
  ASSERT_EQ(lagwise_save(m.model, state, file.c_str(), why, sizeof why), 0) << why;
  lagwise_state* const loaded = lagwise_load(m.model, file.c_str(), why, sizeof why);
  ASSERT_NE(loaded, nullptr) << why;
  lagwise_state* const fork = lagwise_fork(state);
  lagwise_state* const both[] = {loaded, fork};
  const int64_t next[] = {9, 9};
  EXPECT_EQ(lagwise_step_many(m.model, both, next, 2), 0);
  lagwise_step(m.model, state, 9);
  EXPECT_EQ(logits_of(m, loaded), logits_of(m, state));
  EXPECT_EQ(logits_of(m, fork), logits_of(m, state));
  for (lagwise_state* each : {state, loaded, fork}) lagwise_end(each);
  EXPECT_EQ(lagwise_load(m.model, "/nowhere", why, sizeof why), nullptr);
  EXPECT_THAT(why, HasSubstr("/nowhere"));
}

TEST(LagwiseInC, SaysInOneLineWhatIsWrongWithAFile) {
  const TempFolder folder;
  char why[30] = "";
  EXPECT_EQ(lagwise_open("/nowhere", why, sizeof why), nullptr);
  EXPECT_THAT(why, HasSubstr("/nowhere"));
  EXPECT_LT(std::strlen(why), sizeof why);
  put(folder / "x", "nonsense");
  EXPECT_EQ(lagwise_open((folder / "x").c_str(), nullptr, 0), nullptr);
  const lagwise::LineVector<uint8_t> bytes = small_model_bytes();
  put(folder / "m", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  lagwise_model* const model = lagwise_open((folder / "m").c_str(), why, sizeof why);
  ASSERT_NE(model, nullptr) << why;
  EXPECT_GT(lagwise_state_bytes(model), 1000u);
  lagwise_close(model);
  lagwise_close(nullptr);
  lagwise_end(nullptr);
}

}  // namespace
