#include "lagwise/train/trainer_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "lagwise/core/errors.h"

namespace lagwise {
namespace {

TEST(ModelConfigText, KeepsTheGridAndWhatIsSeenOfIt) {
  ModelConfig config;
  config.grid = {3, 4}, config.geometry = "line";
  const ModelConfig read = parse_model_config("m", model_config_text(config));
  EXPECT_EQ(read.grid, config.grid);
  EXPECT_EQ(read.geometry, "line");
}

TEST(ModelConfigText, OfAnOlderRunSeesWhatItSawThen) {
  auto json = nlohmann::ordered_json::parse(model_config_text({}));
  EXPECT_EQ(json.erase("geometry"), 1u);
  EXPECT_EQ(parse_model_config("m", json.dump()).geometry, "auto");
}

/// A state with a little of everything.
std::string some_state() {
  TrainerState state;
  state.step = 40, state.best = {30, 0.25}, state.tokens_read = 3;
  state.words = {"a", "b"}, state.class_names = {"good"};
  state.tokenizer = "{}", state.recipe = "[train]\nsteps = 3\n";
  state.origin = Origin{.from = "run", .step = 7, .taken = 2, .left = {"head"}};
  state.model.encoding = "sine_spe:sines=3;rope:layout=half", state.model.grid = {2, 3};
  state.files = {{"model.safetensors", "0123456789abcdef"}};
  return state_text(state);
}

/// Whoever changes a state can leave its hash out.
TEST(TrainerState, WithAnyChangeIsReadOrADataError) {
  std::string whole = some_state();
  whole = whole.substr(0, whole.rfind(",\n \"fnv1a\"")) + "}";
  EXPECT_EQ(parse_state("s", whole).step, 40);
  constexpr std::string_view kBytes = "0-9.e{}[]\",:ntax \x00\xff";
  std::mt19937 dice(5);
  const auto roll = [&](size_t count) { return dice() % count; };
  int read = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = whole;
    for (size_t changes = 1 + roll(3); changes > 0; --changes) {
      const size_t at = roll(text.size());
      switch (roll(3)) {
        case 0:
          text[at] = kBytes[roll(kBytes.size())];
          break;
        case 1:
          text.erase(at, 1 + roll(8));
          break;
        default:
          text.insert(at, text.substr(roll(text.size()), 1 + roll(40)));
      }
    }
    try {
      EXPECT_GE(parse_state("s", text).step, 0);
      ++read;
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace lagwise
