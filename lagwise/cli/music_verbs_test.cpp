// `lagwise generate` and `lagwise eval --continuations` on a model of music that was
// trained for a moment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/grooves.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using nlohmann::json;
using ::testing::HasSubstr;

class MusicRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    put(*folder_ / "music.toml",
        "[model]\nlayers = 1\ndim = 16\nheads = 2\nencoding = \"rope:layout=half\"\n"
        "[data]\ntask = \"music:styles=2,songs=20\"\nlength = 32\n"
        "[train]\nsteps = 4\nbatch = 4\nwarmup = 1\nthreads = 1\neval_examples = 4\n");
    const Outcome trained = lagwise({"train", *folder_ / "music.toml", "--out", run()});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string run() { return *folder_ / "run"; }

  static TempFolder* folder_;
};

TempFolder* MusicRun::folder_ = nullptr;

TEST_F(MusicRun, GoesOnFromAMidiFile) {
  data::write_smf(*folder_ / "song.mid", data::Grooves().song(3));
  const std::vector<std::string> words = {
      "generate",        run(), "--prompt",   *folder_ / "song.mid",
      "--prompt-tokens", "40",  "--length",   "60",
      "--seed",          "7",   "--no-sound", "--out"};
  const auto written = [&](const std::string& name) {
    std::vector<std::string> all = words;
    all.push_back(*folder_ / name);
    const Outcome outcome = lagwise(all);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("│ ends the prompt"));
    EXPECT_THAT(outcome.err, HasSubstr("tokens/s"));
    for (const auto& entry : std::filesystem::directory_iterator(*folder_ / name))
      if (entry.path().extension() == ".json") return entry.path();
    return std::filesystem::path();
  };
  std::filesystem::path card = written("one"), again = written("two");
  const json got = json::parse(contents(card));
  EXPECT_EQ(got["prompt_tokens"].size(), 40u);
  EXPECT_EQ(got["tokens"].size(), 60u);
  EXPECT_EQ(got["seed"], 7);
  EXPECT_EQ(got["music"]["tracks"][0]["name"], "bass");
  EXPECT_LT(got["music"]["prompt_end"], got["music"]["end"]);
  const data::Music music = data::read_smf(card.replace_extension(".mid"));
  EXPECT_EQ(contents(card), contents(again.replace_extension(".mid")));
  EXPECT_EQ(std::ranges::count(contents(card.replace_extension(".tokens")), '\n'), 100);
}

TEST_F(MusicRun, GoesOnFromBars) {
  data::write_smf(*folder_ / "bars.mid", data::Grooves().song(4));
  const auto written = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", run(), "--length", "30", "--json"});
    return lagwise(more);
  };
  const std::string song = *folder_ / "bars.mid";
  const Outcome two = written({"--prompt", song, "--prompt-bars", "2"});
  ASSERT_EQ(two.code, 0) << two.err;
  const json sample = json::parse(two.out)["samples"][0];
  const auto given = sample["prompt_tokens"].get<std::vector<int32_t>>();
  const auto scheme = data::make_token_scheme("groove");
  const std::vector<int32_t> whole = scheme->encode(data::Grooves().song(4)).ids;
  ASSERT_EQ(std::ssize(given), scheme->first_bars(whole, 2));
  EXPECT_TRUE(std::equal(given.begin(), given.end(), whole.begin()));
  const int64_t bar = 4 * sample["music"]["ticks_per_beat"].get<int64_t>();
  EXPECT_GT(sample["music"]["prompt_end"], bar);
  EXPECT_LE(sample["music"]["prompt_end"], 2 * bar);
  const Outcome piece = written({"--prompt", "test:0", "--prompt-bars", "1"});
  EXPECT_EQ(piece.code, 0) << piece.err;
  expect_failure(written({"--prompt-bars", "2"}), 2,
                 "--prompt-bars: expected the music they are of");
  expect_failure(
      written({"--prompt", song, "--prompt-bars", "2", "--prompt-tokens", "9"}), 2,
      "--prompt-tokens excludes --prompt-bars");
  EXPECT_EQ(written({"--prompt", song, "--prompt-bars", "0"}).code, 2);
}

TEST_F(MusicRun, WritesWithoutTheDataItWasTrainedOn) {
  const std::string set = *folder_ / "set", recipe = *folder_ / "set.toml",
                    song = *folder_ / "other.mid", trained = *folder_ / "on-set";
  data::write_music_set(set, data::make_groove_corpus(2, 20, 1, "groove:velocities=3"));
  data::write_smf(song, data::Grooves().song(5));
  put(recipe,
      "[model]\nlayers = 1\ndim = 16\nheads = 2\n"
      "[data]\ntask = \"music\"\nlength = 32\npath = \"" +
          set + "\"\n[train]\nsteps = 2\nbatch = 2\nthreads = 1\n");
  ASSERT_EQ(lagwise({"train", recipe, "--out", trained}).code, 0);
  const auto write = [&](const std::string& prompt) {
    return lagwise({"generate", trained, "--prompt", prompt, "--length", "20",
                    "--no-sound", "--json"});
  };
  const auto tokens = [](const Outcome& outcome) {
    return json::parse(outcome.out)["samples"][0]["tokens"];
  };
  const json before = tokens(write(song));
  std::filesystem::rename(set, set + "-moved");
  const Outcome after = write(song);
  ASSERT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(tokens(after), before);
  const Outcome piece = write("test:0");
  EXPECT_EQ(piece.code, 3);
  EXPECT_THAT(piece.err, HasSubstr(set + ": expected the data of " + trained +
                                   ", and nothing is there; --data says where"));
  const Outcome judged = lagwise({"eval", trained});
  EXPECT_EQ(judged.code, 3);
  EXPECT_THAT(judged.err, HasSubstr("--data says where"));
  EXPECT_EQ(lagwise({"generate", trained, "--prompt", "test:0", "--length", "20",
                     "--data", set + "-moved", "--no-sound"})
                .code,
            0);
}

TEST_F(MusicRun, RefusesASilentPrompt) {
  data::Music silence = data::Grooves().song(0);
  for (data::Track& track : silence.tracks) track.notes.clear();
  data::write_smf(*folder_ / "silence.mid", silence);
  const Outcome outcome =
      lagwise({"generate", run(), "--prompt", *folder_ / "silence.mid"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("silence.mid: expected notes to go on from"));
}

TEST_F(MusicRun, IsJudgedByItsContinuations) {
  const Outcome outcome = lagwise({"eval", run(), "--continuations", "3", "--length",
                                   "50", "--save", *folder_ / "saved"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("3 continuations of test: 50 tokens from the first 8"));
  EXPECT_THAT(outcome.out, HasSubstr("the piece itself"));
  const json got = json::parse(contents(run() + "/eval/continuations-test.json"));
  EXPECT_EQ(got["count"], 3);
  for (const char* const part : {"time_pitch", "onset_duration", "onset_drum"})
    for (const char* const line : {"written", "truth", "shuffled"}) {
      EXPECT_EQ(got[part][line]["mean"].size(), 4u) << part << line;
      EXPECT_EQ(got[part][line]["counted"].size(), 4u) << part << line;
    }
  double truth = 0;
  for (const json& quarter : got["onset_duration"]["truth"]["mean"])
    truth += quarter.is_null() ? 0 : quarter.get<double>();  // null: no notes in it
  EXPECT_GT(truth, 0);
  EXPECT_TRUE(std::filesystem::exists(*folder_ / "saved/test-piece-2-seed0-1.mid"));
  EXPECT_EQ(got["prompt_bars"], 0);
  EXPECT_EQ(lagwise({"eval", run(), "--continuations", "1"}).code, 2);
  EXPECT_EQ(lagwise({"eval", run(), "--prompt-tokens", "5"}).code, 2);
}

TEST_F(MusicRun, IsJudgedByWhatFollowsBars) {
  const auto judged = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"eval", run(), "--continuations", "2", "--length", "40"});
    return lagwise(more);
  };
  const Outcome outcome = judged({"--prompt-bars", "3", "--save", *folder_ / "bars"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("40 tokens from the first 3 bars of a piece"));
  const json got = json::parse(contents(run() + "/eval/continuations-test.json"));
  EXPECT_EQ(got["prompt_bars"], 3);
  int64_t tokens = 0;
  for (const int piece : {0, 1}) {
    const json card = json::parse(contents(
        *folder_ / ("bars/test-piece-" + std::to_string(piece) + "-seed0-1.json")));
    tokens += std::ssize(card["prompt_tokens"]);
    const int64_t bar = 4 * card["music"]["ticks_per_beat"].get<int64_t>();
    EXPECT_GT(card["music"]["prompt_end"], 2 * bar);
    EXPECT_LE(card["music"]["prompt_end"], 3 * bar);
  }
  EXPECT_NEAR(got["prompt"].get<double>(), static_cast<double>(tokens) / 2, 0.5);
  const Outcome too_many = judged({"--prompt-bars", "1000"});
  EXPECT_EQ(too_many.code, 2);
  EXPECT_THAT(too_many.err, HasSubstr("of twice the prompt (1000 bars)"));
  EXPECT_EQ(judged({"--prompt-bars", "2", "--prompt-tokens", "9"}).code, 2);
  EXPECT_EQ(lagwise({"eval", run(), "--prompt-bars", "5"}).code, 2);
}

}  // namespace
}  // namespace lagwise::cli
