#include "lagwise/cli/generate/music.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/cli/generate/fluidsynth.h"
#include "lagwise/cli/terminal/piano_roll.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/grooves.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;
using ::testing::Not;

MusicSample sample() {
  const auto scheme = data::make_token_scheme("groove");
  const std::vector<int32_t> ids = scheme->encode(data::Grooves().song(0)).ids;
  return {{ids.begin(), ids.begin() + 300}, {ids.begin() + 300, ids.end()}};
}

TEST(MusicFiles, HoldTheMusicAndTheTokens) {
  const TempFolder folder;
  const auto scheme = data::make_token_scheme("groove");
  const MusicFiles files = write_music(folder / "deep/song", *scheme, sample(), false);
  const data::Music back = data::read_smf(files.midi);
  std::vector<int32_t> ids = scheme->encode(back).ids;
  const MusicSample wanted = sample();
  std::vector<int64_t> all = wanted.prompt;
  all.insert(all.end(), wanted.written.begin(), wanted.written.end());
  EXPECT_EQ(std::vector<int64_t>(ids.begin(), ids.end()), all);
  const auto marker =
      std::ranges::find(back.texts, "end of the prompt", &data::Text::text);
  ASSERT_NE(marker, back.texts.end());
  EXPECT_GT(marker->tick, 0);
  EXPECT_LT(marker->tick, back.end);
  EXPECT_THAT(contents(files.tokens), ::testing::StartsWith("BOS\n"));
  EXPECT_EQ(files.wav, "");
}

TEST(MusicFiles, TakeTempoAndInstrumentsFromTheFileOfThePrompt) {
  const auto scheme = data::make_token_scheme("groove");
  data::Music like = data::Grooves().song(0);
  like.tempos = {{0, 400000}};
  for (data::Track& track : like.tracks)
    if (!track.drums()) track.program = track.name == "bass" ? 38 : 19;
  MusicSample played = sample();
  played.like = &like;
  const data::Music music = music_of(*scheme, played).music;
  EXPECT_EQ(music.tempos, like.tempos);
  EXPECT_EQ(music.tracks[0].program, 38);
  EXPECT_EQ(music.tracks[2].program, 19);
  EXPECT_EQ(music_json(*scheme, played, 256)["us_per_beat"], 400000);
  EXPECT_EQ(music_of(*scheme, sample()).music.tracks[0].program, 33);
}

// A program of that name on the path, which writes down what it was asked.
struct FakeSynth {
  explicit FakeSynth(const std::string& script) {
    put(folder / "fluidsynth", "#!/bin/sh\n" + script);
    std::filesystem::permissions(folder / "fluidsynth", std::filesystem::perms::all);
    put(folder / "font.sf2", "");
    path = std::getenv("PATH");
    setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
    setenv("LAGWISE_SOUNDFONT", (folder / "font.sf2").c_str(), 1);
  }
  ~FakeSynth() {
    setenv("PATH", path.c_str(), 1);
    unsetenv("LAGWISE_SOUNDFONT");
  }
  TempFolder folder;
  std::string path;
};

TEST(MusicFiles, AreRenderedByFluidsynth) {
  const FakeSynth synth(
      "while [ $# -gt 0 ]; do if [ \"$1\" = -F ]; then echo \"$@\" > "
      "\"$2\"; fi; shift; done; echo loud; echo loud >&2");
  const auto scheme = data::make_token_scheme("groove");
  ::testing::internal::CaptureStdout();
  const MusicFiles files = write_music(synth.folder / "it's a song", *scheme, sample());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  ASSERT_EQ(files.wav, synth.folder / "it's a song.wav");
  EXPECT_THAT(contents(files.wav), HasSubstr("font.sf2 " + files.midi));
}

TEST(MusicFiles, GoWithoutSoundWhereFluidsynthFails) {
  const FakeSynth synth("exit 1");
  const auto scheme = data::make_token_scheme("groove");
  EXPECT_EQ(write_music(synth.folder / "song", *scheme, sample()).wav, "");
  setenv("LAGWISE_SOUNDFONT", "/nowhere.sf2", 1);
  EXPECT_FALSE(render_wav(synth.folder / "song.mid", synth.folder / "song.wav"));
}

data::Music two_tracks() {
  data::Music music;
  music.ticks_per_beat = 4;
  music.tracks = {{"bass", 1, 33, {{0, 4, 36, 80}, {8, 10, 37, 80}}, {}},
                  {"drums", 9, 0, {{0, 1, 36, 80}, {4, 5, 38, 80}}, {}}};
  data::tidy(music);
  return music;
}

TEST(PianoRoll, DrawsNotesAndDrums) {
  EXPECT_EQ(piano_roll(two_tracks(), {.columns = 16, .prompt = 8}),
            "       1\n"
            "   C#2 ▄▄▄▄    │▀▀      \n"
            "cymbal         │        \n"
            "   hat         │        \n"
            " snare     ▪   │        \n"
            "  kick ▪       │        \n"
            " other         │        \n"
            "       bass  drums  a column is 1 sixteenth; │ ends the prompt\n");
}

TEST(PianoRoll, ColoursByTrack) {
  const std::string roll = piano_roll(two_tracks(), {.columns = 16, .colour = true});
  EXPECT_THAT(roll, HasSubstr("\033[38;5;33m▄\033[0m"));
  EXPECT_THAT(roll, HasSubstr("\033[38;5;172m▪\033[0m"));
}

TEST(PianoRoll, SqueezesALongPieceIntoItsSystems) {
  const std::string roll =
      piano_roll(data::Grooves().song(0), {.columns = 64, .systems = 2});
  EXPECT_THAT(roll, HasSubstr("sixteenths"));
  EXPECT_EQ(piano_roll(data::Music(), {}), "");
  const std::string shown = shown_music(*data::make_token_scheme("groove"), sample());
  EXPECT_THAT(shown, Not(HasSubstr("\033")));  // a test's stdout is no terminal
}

}  // namespace
}  // namespace lagwise::cli
