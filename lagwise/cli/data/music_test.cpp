#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/music/grooves.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

void put_song(const std::string& file, int64_t song) {
  put(file, data::smf_bytes(data::Grooves().song(song)));
}

TEST(DataMidi, MakesASetAndSaysWhatWasLost) {
  const TempFolder folder;
  for (int64_t i = 0; i < 3; ++i)
    put_song(folder / ("midi/" + std::to_string(i) + ".mid"), i);
  put(folder / "midi/torn.mid", "MThd");
  const Outcome outcome =
      lagwise({"data", "midi", folder / "midi", "--tokens", "groove", "--transpose",
               "1", "--out", folder / "set"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("3 of 4 files read\n1 damaged and skipped:\n"));
  EXPECT_THAT(outcome.out, HasSubstr("torn.mid, byte 4"));
  EXPECT_THAT(outcome.out, HasSubstr("notes kept (100.00 %)"));
  EXPECT_THAT(outcome.out, HasSubstr("2 transposed pieces added to train"));
  const data::MusicCorpus set = data::open_music_set(folder / "set");
  EXPECT_EQ(set.splits.at("train").size(), 3u);
  EXPECT_EQ(set.splits.at("valid").size(), 1u);
}

TEST(DataMidi, FailsOnlyWhereNothingCouldBeRead) {
  const TempFolder folder;
  put(folder / "midi/torn.mid", "MThd");
  const Outcome outcome =
      lagwise({"data", "midi", folder / "midi", "--out", folder / "set"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("torn.mid, byte 4"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_EQ(lagwise({"data", "midi", folder / "midi", "--tokens", "remmi", "--out",
                     folder / "set"})
                .code,
            2);
}

TEST(DataMidi, LeavesAFolderWithOtherFilesAlone) {
  const TempFolder folder;
  put_song(folder / "midi/song.mid", 0);
  const Outcome outcome =
      lagwise({"data", "midi", folder / "midi", "--out", folder / "midi"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("expected a new or empty folder"));
  EXPECT_FALSE(std::filesystem::exists(folder / "midi/manifest.json"));
  EXPECT_EQ(lagwise({"data", "grooves", "--songs", "3", "--out", folder / "midi"}).code,
            2);
}

TEST(DataGrooves, MakesTheSameSetAndItsMidiFiles) {
  const TempFolder folder;
  const std::vector<std::string> words = {"data",    "grooves", "--styles", "3",
                                          "--songs", "10",      "--seed",   "5",
                                          "--midi",  "--out"};
  for (const char* const name : {"one", "two"}) {
    std::vector<std::string> all = words;
    all.push_back(folder / name);
    EXPECT_EQ(lagwise(all).code, 0);
  }
  for (const char* const file : {"/train.bin", "/valid.bin", "/manifest.json"})
    EXPECT_EQ(contents((folder / "one") + file), contents((folder / "two") + file));
  // The MIDI files hold the same music as the tokens.
  data::MusicCorpus set = data::open_music_set(folder / "one");
  EXPECT_EQ(set.splits,
            data::read_midi_folder((folder / "one") + "/midi", "groove").splits);
}

}  // namespace
}  // namespace lagwise::cli
