#include "lagwise/runtime/wasm/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/runtime/testing_model.h"

namespace lagwise::runtime {
namespace {

using Tokens = std::vector<int64_t>;

/// A model that knows the words of grooves, with weights of nobody's training.
struct GrooveModel {
  GrooveModel() : scheme(data::make_token_scheme("groove")) {
    Plan plan = testing::small_plan();
    plan.vocabulary = scheme->vocabulary().size();
    ModelWriter writer = testing::small_writer(plan);
    const nlohmann::json words = {{"task", "music"},
                                  {"words", scheme->vocabulary().words()}};
    writer.text("words", words.dump());
    bytes = writer.bytes();
    model = lagwise_open_memory(bytes.data(), bytes.size(), nullptr, 0);
    prompt = {scheme->vocabulary().id("BOS"), scheme->vocabulary().id("On_bass_40")};
  }
  ~GrooveModel() { lagwise_close(model); }

  Tokens played(const Sampling& sampling, int64_t count) const {
    Player player(model, prompt, sampling);
    Tokens tokens;
    while (std::ssize(tokens) < count) tokens.push_back(player.next());
    return tokens;
  }

  std::unique_ptr<data::TokenScheme> scheme;
  LineVector<uint8_t> bytes;
  lagwise_model* model = nullptr;
  Tokens prompt;
};

TEST(Player, PlaysOnlyWhatIsLegalAndNeverEnds) {
  const GrooveModel m;
  const auto grammar = m.scheme->grammar();
  for (const int64_t token : m.prompt) grammar->advance(static_cast<int32_t>(token));
  for (const int64_t token : m.played({.temperature = 3, .seed = 1}, 3000)) {
    ASSERT_NE(token, m.scheme->end());
    ASSERT_TRUE(grammar->legal(static_cast<int32_t>(token)));
    grammar->advance(static_cast<int32_t>(token));
  }
}

TEST(Player, PlaysTheSameForTheSameSeed) {
  const GrooveModel m;
  EXPECT_EQ(m.played({.seed = 1}, 100), m.played({.seed = 1}, 100));
  EXPECT_NE(m.played({.seed = 1}, 100), m.played({.seed = 2}, 100));
  const Sampling penalised = {
      .repetition_penalty = 3, .repetition_window = 8, .seed = 1};
  EXPECT_NE(m.played(penalised, 100), m.played({.seed = 1}, 100));
}

TEST(Player, TellsEveryNoteOnce) {
  const GrooveModel m;
  Player player(m.model, m.prompt, {.temperature = 3, .seed = 4});
  std::vector<int32_t> ids(m.prompt.begin(), m.prompt.end());
  data::Music heard = player.heard();
  for (int i = 0; i < 2000; ++i) {
    ids.push_back(static_cast<int32_t>(player.next()));
    for (size_t t = 0; t < heard.tracks.size(); ++t) {
      const auto& from = player.heard().tracks[t].notes;
      heard.tracks[t].notes.insert(heard.tracks[t].notes.end(), from.begin(),
                                   from.end());
    }
    player.forget();
  }
  const data::Music whole = m.scheme->decode(ids);
  EXPECT_EQ(player.now(), whole.end);
  data::tidy(heard);
  for (size_t t = 0; t < heard.tracks.size(); ++t) {
    std::vector<data::Note> complete = whole.tracks[t].notes;
    std::erase_if(complete,
                  [&](const data::Note& note) { return note.end == whole.end; });
    std::erase_if(heard.tracks[t].notes,
                  [&](const data::Note& note) { return note.end == whole.end; });
    EXPECT_EQ(heard.tracks[t].notes, complete);
  }
}

TEST(Player, RefusesWhatIsNoMusic) {
  const LineVector<uint8_t> bytes = testing::small_model_bytes();
  lagwise_model* const model =
      lagwise_open_memory(bytes.data(), bytes.size(), nullptr, 0);
  EXPECT_THROW(Player(model, Tokens{1}, {}), std::invalid_argument);
  lagwise_close(model);
  const GrooveModel m;
  EXPECT_THROW(Player(m.model, Tokens{}, {}), std::invalid_argument);
  EXPECT_THROW(Player(m.model, Tokens{-1}, {}), std::invalid_argument);
  EXPECT_THROW(Player(m.model, Tokens{100000}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::runtime
