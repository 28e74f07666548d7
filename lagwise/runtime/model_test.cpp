#include "lagwise/runtime/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "lagwise/core/errors.h"
#include "lagwise/core/testing.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/runtime/state_file.h"
#include "lagwise/runtime/testing_model.h"

namespace lagwise::runtime {
namespace {

using namespace lagwise::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr kernels::WeightType kTypes[] = {
    kernels::WeightType::f32, kernels::WeightType::bf16, kernels::WeightType::int8};

std::vector<float> logits_of(const State& state) {
  return {state.logits(), state.logits() + state.layout().vocabulary()};
}

const std::vector<int64_t> kText = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 20, 0};

TEST(RuntimeModel, GivesTheSameBitsHoweverATextIsSplitOnEveryTargetAndThread) {
  for (const auto type : kTypes) {
    const LineVector<uint8_t> bytes = small_model_bytes(type);
    for_each_simd_target([&] {
      const auto model = Model::open("m", bytes);
      std::vector<float> want;
      for (const int threads : {1, 2, 3, 7}) {
        model->set_threads(threads);
        const auto whole = model->start(), steps = model->start();
        model->prefill(*whole, kText);
        for (const int64_t token : kText) model->step(*steps, token);
        if (want.empty()) want = logits_of(*whole);
        EXPECT_EQ(logits_of(*whole), want) << threads;
        EXPECT_EQ(logits_of(*steps), want) << threads;
        for (const float x : want) EXPECT_TRUE(std::isfinite(x));
      }
    });
  }
}

TEST(RuntimeModel, StepsManyTextsAsEachAlone) {
  const LineVector<uint8_t> bytes = small_model_bytes();
  const auto model = Model::open("m", bytes);
  std::vector<std::unique_ptr<State>> together, alone;
  std::vector<State*> states;
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 40; ++i) {
    together.push_back(model->start());
    for (int64_t j = 0; j <= i % 5; ++j) model->step(*together.back(), (i + j) % 21);
    alone.push_back(std::make_unique<State>(*together.back()));
    states.push_back(together.back().get());
    tokens.push_back(i % 21);
  }
  model->step_many(states, tokens);
  for (size_t i = 0; i < alone.size(); ++i) {
    model->step(*alone[i], tokens[i]);
    EXPECT_EQ(logits_of(*together[i]), logits_of(*alone[i])) << i;
  }
}

TEST(RuntimeModel, ServesSeveralThreadsAtATime) {
  const LineVector<uint8_t> bytes = small_model_bytes();
  const auto model = Model::open("m", bytes);
  model->set_threads(2);
  const auto expected = model->start();
  model->prefill(*expected, kText);
  std::vector<std::thread> users;
  for (int i = 0; i < 4; ++i)
    users.emplace_back([&] {
      for (int again = 0; again < 20; ++again) {
        const auto state = model->start();
        for (const int64_t token : kText) model->step(*state, token);
        EXPECT_EQ(logits_of(*state), logits_of(*expected));
      }
    });
  for (std::thread& user : users) user.join();
}

TEST(RuntimeModel, KnowsWhatItCanTake) {
  const LineVector<uint8_t> bytes = small_model_bytes();
  const auto model = Model::open("m", bytes);
  const auto state = model->start();
  const int64_t good[] = {0, 20}, high[] = {0, 21}, low[] = {-1};
  EXPECT_TRUE(model->can_take(*state, good));
  EXPECT_FALSE(model->can_take(*state, high));
  EXPECT_FALSE(model->can_take(*state, low));

  Plan plan = small_plan();
  plan.one.inputs.resize(1);
  plan.one.inputs[0].table = waves(2 * plan.dim, 0.5);
  const LineVector<uint8_t> short_bytes = small_writer(plan).bytes();
  const auto short_model = Model::open("m", short_bytes);
  const auto short_state = short_model->start();
  EXPECT_TRUE(short_model->can_take(*short_state, good));
  short_model->prefill(*short_state, good);
  EXPECT_FALSE(short_model->can_take(*short_state, {good, 1}));
}

TEST(RuntimeModel, KeepsTensorsThatAreAlikeOnce) {
  const LineVector<uint8_t> bytes = small_model_bytes();
  const data::Safetensors file("m", bytes);
  EXPECT_NE(file.find("layers.0.frequency"), nullptr);
  EXPECT_EQ(file.find("layers.1.frequency"), nullptr);
  EXPECT_THAT(file.metadata().at("same"), HasSubstr("layers.1.frequency"));
}

TEST(RuntimeState, SavedLoadedAndForkedGoesOnWithTheSameBits) {
  const TempFolder folder;
  const LineVector<uint8_t> bytes = small_model_bytes();
  const auto model = Model::open("m", bytes);
  const auto state = model->start();
  model->prefill(*state, kText);
  save_state(folder / "state", *state);
  const auto fork = std::make_unique<State>(*state);
  const auto loaded = load_state(folder / "state", *model);
  EXPECT_EQ(loaded->position(), std::ssize(kText));
  EXPECT_EQ(logits_of(*loaded), logits_of(*state));
  model->step(*state, 7);
  model->step(*loaded, 7);
  EXPECT_EQ(logits_of(*loaded), logits_of(*state));
  EXPECT_NE(logits_of(*fork), logits_of(*state));  // a fork has a life of its own
}

TEST(RuntimeState, RemembersItsLastTokens) {
  const LineVector<uint8_t> bytes = small_model_bytes();
  const auto model = Model::open("m", bytes);
  const auto state = model->start();
  std::vector<int64_t> recent;
  state->recent_tokens(5, recent);
  EXPECT_TRUE(recent.empty());
  for (int64_t i = 0; i < 1100; ++i) state->take(i % 21);
  state->recent_tokens(3, recent);
  EXPECT_THAT(recent, ElementsAre(1097 % 21, 1098 % 21, 1099 % 21));
  recent.clear();
  state->recent_tokens(5000, recent);
  EXPECT_EQ(std::ssize(recent), StateLayout::kRecentTokens);
}

TEST(RuntimeState, RefusesDamageAndOtherModels) {
  const TempFolder folder;
  const LineVector<uint8_t> bytes = small_model_bytes();
  const LineVector<uint8_t> other_bytes = small_model_bytes(kernels::WeightType::int8);
  const auto model = Model::open("m", bytes), other = Model::open("o", other_bytes);
  const auto state = model->start();
  model->prefill(*state, kText);
  const std::string whole = state->saved();
  const auto read = [&](const std::string& text) {
    return State::from_saved("f", text, model->layout(), model->fingerprint());
  };
  EXPECT_NO_THROW(read(whole));
  for (size_t size = 0; size < whole.size(); size += 97)
    EXPECT_THROW(read(whole.substr(0, size)), DataError) << size;
  for (size_t at = 0; at < whole.size(); at += 101) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THROW(read(damaged), DataError) << at;
  }
  put(folder / "s", whole);
  EXPECT_THROW(load_state(folder / "s", *other), DataError);
  EXPECT_THROW(load_state(folder / "none", *model), DataError);
}

/// Whoever can write a state can also write its hash.
TEST(RuntimeState, RefusesPlacesAndTokensThatAreNone) {
  constexpr size_t kPosition = 16 + 8, kTokens = 16 + 64;  // after the magic
  const auto bytes = small_model_bytes();
  const auto model = Model::open("m", bytes);
  const auto state = model->start();
  model->prefill(*state, kText);
  const auto forged = [&]<class T>(size_t at, T value) {
    std::string text = state->saved();
    text.resize(text.size() - 8);
    text.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    const uint64_t hash = data::fnv1a(data::bytes_of(text));
    text.append(reinterpret_cast<const char*>(&hash), sizeof hash);
    return State::from_saved("f", text, model->layout(), model->fingerprint());
  };
  EXPECT_EQ(forged(kPosition, int64_t{7})->position(), 7);
  EXPECT_NO_THROW(forged(kTokens, int32_t{20}));
  EXPECT_THROW(forged(kPosition, int64_t{-1}), DataError);
  EXPECT_THROW(forged(kPosition, INT64_MAX), DataError);
  EXPECT_THROW(forged(kPosition, model->most_positions() + 1), DataError);
  EXPECT_THROW(forged(kTokens, int32_t{21}), DataError);
  EXPECT_THROW(forged(kTokens, int32_t{-1}), DataError);
  const auto last = forged(kPosition, model->most_positions());
  EXPECT_FALSE(model->can_take(*last, kText));
}

}  // namespace
}  // namespace lagwise::runtime
