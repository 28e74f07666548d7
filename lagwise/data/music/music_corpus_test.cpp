#include "lagwise/data/music/music_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/data/music/grooves.h"
#include "lagwise/data/sets/shards.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

void put_song(const std::string& file, int64_t song) {
  put(file, smf_bytes(Grooves().song(song)));
}

TEST(GrooveCorpus, HoldsEveryStyleInEverySplit) {
  const MusicCorpus corpus = make_groove_corpus(4, 40, 1);
  EXPECT_EQ(corpus.splits.at("train").size(), 32u);
  EXPECT_EQ(corpus.splits.at("valid").size(), 4u);
  EXPECT_EQ(corpus.splits.at("test").size(), 4u);
  const Grooves grooves(4, 1);
  EXPECT_EQ(corpus.splits.at("valid")[1],
            make_token_scheme("groove")->encode(grooves.song(33)).ids);
}

TEST(GrooveCorpus, IsAFunctionOfItsNumbers) {
  const MusicCorpus corpus = make_groove_corpus(2, 3, 1);
  EXPECT_EQ(make_groove_corpus(2, 3, 1).hash(), corpus.hash());
  EXPECT_NE(make_groove_corpus(2, 3, 2).hash(), corpus.hash());
  EXPECT_EQ(corpus.splits.at("train").size(), 1u);
  EXPECT_THROW(make_groove_corpus(2, 2, 1), std::invalid_argument);
}

TEST(MusicCorpus, KnowsWhereAPieceEnds) {
  MusicCorpus one{"groove", "", {{"train", {{1, 2}, {3}}}}},
      other{"groove", "", {{"train", {{1}, {2, 3}}}}};
  EXPECT_NE(one.hash(), other.hash());
  EXPECT_EQ(one.tokens("train"), 3);
  EXPECT_EQ(one.tokens("test"), 0);
}

TEST(MusicSet, ComesBack) {
  const TempFolder folder;
  MusicCorpus corpus = make_groove_corpus(2, 5, 1, "groove:velocities=4");
  EXPECT_EQ(add_transposed(corpus, 1), 6);
  write_music_set(folder / "set", corpus);
  const MusicCorpus back = open_music_set(folder / "set");
  EXPECT_EQ(back.splits, corpus.splits);
  EXPECT_EQ(back.hash(), corpus.hash());
  EXPECT_EQ(back.info.at("transposed"), "1");
  EXPECT_EQ(back.info.at("vocabulary_fnv1a").size(), 16u);
}

TEST(MusicSet, RefusesWordsOfAnotherVocabulary) {
  const TempFolder folder;
  const auto written = [&](const std::string& scheme, int64_t vocabulary) {
    ShardSetWriter writer(folder / "set", {"", scheme, vocabulary, {}, {}});
    writer.add("train", std::vector<int32_t>{1, 2});
    writer.commit();
    return data_error([&] { open_music_set(folder / "set"); });
  };
  EXPECT_THAT(written("groove", 794), HasSubstr("expected the words of the scheme"));
  EXPECT_THAT(written("bytes", 256), HasSubstr("expected a set of music"));
}

TEST(MidiFolder, HonoursTheFoldersOfSplits) {
  const TempFolder folder;
  put_song(folder / "train/a.mid", 0);
  put_song(folder / "Val/deep/b.MID", 1);
  put_song(folder / "test/c.midi", 2);
  put_song(folder / "stray.mid", 3);
  put(folder / "test/notes.txt", "no music");
  MidiReport report;
  const MusicCorpus corpus = read_midi_folder(folder.path(), "groove", &report);
  EXPECT_EQ(report.files, 4);
  EXPECT_EQ(report.read, 4);
  const auto tokens = [&](int64_t song) {
    return make_token_scheme("groove")->encode(Grooves().song(song)).ids;
  };
  EXPECT_EQ(corpus.splits.at("train"), (Pieces{tokens(3), tokens(0)}));
  EXPECT_EQ(corpus.splits.at("valid"), (Pieces{tokens(1)}));
  EXPECT_EQ(corpus.splits.at("test"), (Pieces{tokens(2)}));
}

TEST(MidiFolder, SplitsByTheNameOfTheFile) {
  const TempFolder folder;
  for (int64_t i = 0; i < 40; ++i)
    put_song(folder / ("s" + std::to_string(i) + ".mid"), i % 3);
  const MusicCorpus all = read_midi_folder(folder.path(), "groove");
  const size_t valid = all.splits.at("valid").size(),
               test = all.splits.at("test").size();
  EXPECT_GE(valid, 1u);
  EXPECT_GE(test, 1u);
  EXPECT_LE(valid + test, 12u);
  EXPECT_EQ(all.splits.at("train").size(), 40 - valid - test);
}

TEST(MidiFolder, LeavesSomethingToJudgeByHoweverFewFiles) {
  for (int64_t files = 1; files <= 4; ++files) {
    const TempFolder folder;
    for (int64_t i = 0; i < files; ++i)
      put_song(folder / (std::to_string(i) + ".mid"), i);
    const MusicCorpus corpus = read_midi_folder(folder.path(), "groove");
    EXPECT_TRUE(corpus.splits.contains("train")) << files;
    EXPECT_EQ(corpus.splits.contains("valid"), files >= 2) << files;
    EXPECT_EQ(corpus.splits.contains("test"), files >= 3) << files;
  }
}

TEST(MidiFolder, NamesDamagedFilesAndGoesOn) {
  const TempFolder folder;
  put_song(folder / "good.mid", 0);
  const std::string whole = contents(folder / "good.mid");
  put(folder / "cut.mid", whole.substr(0, 100));
  put(folder / "text.mid", "hello");
  Music drums;
  drums.tracks = {{"drums", kDrumChannel, 0, {{0, 10, 36, 64}}, {}}};
  put(folder / "drums.mid", smf_bytes(drums));
  MidiReport report;
  int64_t seen = 0;
  read_midi_folder(folder.path(), "remi", &report,
                   [&](int64_t done, int64_t files, const std::string&) {
                     EXPECT_EQ(done, seen++);
                     EXPECT_EQ(files, 4);
                   });
  EXPECT_EQ(seen, 4);
  EXPECT_EQ(report.read, 1);
  ASSERT_EQ(report.damaged.size(), 2u);
  EXPECT_THAT(report.damaged[0], HasSubstr("cut.mid, byte "));
  EXPECT_THAT(report.damaged[1], HasSubstr("text.mid, byte 0"));
  ASSERT_EQ(report.silent.size(), 1u);
  EXPECT_THAT(report.silent[0], HasSubstr("drums.mid"));
  EXPECT_GT(report.loss.changed.at("drum notes, dropped"), 0);
}

TEST(MidiFolder, IsRefusedWhereNothingCanBeRead) {
  const TempFolder folder;
  const auto error = [&] {
    return data_error([&] { read_midi_folder(folder.path(), "remi"); });
  };
  EXPECT_THAT(error(), HasSubstr("expected MIDI files"));
  put(folder / "text.mid", "hello");
  EXPECT_THAT(error(), HasSubstr("text.mid, byte 0"));
  EXPECT_THAT(data_error([&] { read_midi_folder(folder / "nowhere", "remi"); }),
              HasSubstr("expected a folder of MIDI files; nothing is there"));
  EXPECT_THAT(data_error([&] { read_midi_folder(folder / "text.mid", "remi"); }),
              HasSubstr("got one file: name its folder"));
}

}  // namespace
}  // namespace lagwise::data
