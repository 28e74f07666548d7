#include "lagwise/data/music/music.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/formats/smf.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;

std::vector<Note> tidied(std::vector<Note> notes) {
  Music music;
  music.tracks.resize(1);
  music.tracks[0].notes = std::move(notes);
  tidy(music);
  return music.tracks[0].notes;
}

TEST(TidyMusic, SortsNotesAndDropsThoseWithoutLength) {
  EXPECT_THAT(
      tidied({{20, 30, 60, 64}, {0, 10, 62, 64}, {5, 5, 60, 64}, {9, 7, 60, 64}}),
      ElementsAre(Note{0, 10, 62, 64}, Note{20, 30, 60, 64}));
}

TEST(TidyMusic, KeepsNumbersInTheirRanges) {
  EXPECT_THAT(
      tidied({{-5, 10, 60, 300}, {0, 10, 128, 64}, {0, int64_t{1} << 40, 61, 0}}),
      ElementsAre(Note{0, 10, 60, 127}, Note{0, kSmfLastTick, 61, 1}));
}

TEST(TidyMusic, CutsANoteWhereItsPitchSoundsAnew) {
  EXPECT_THAT(tidied({{0, 10, 60, 64}, {5, 20, 60, 64}}),
              ElementsAre(Note{0, 5, 60, 64}, Note{5, 20, 60, 64}));
  // Ending together is what one note-off says.
  EXPECT_THAT(tidied({{0, 20, 60, 64}, {5, 20, 60, 64}}),
              ElementsAre(Note{0, 20, 60, 64}, Note{5, 20, 60, 64}));
  EXPECT_THAT(tidied({{0, 10, 60, 64}, {0, 20, 60, 70}}),
              ElementsAre(Note{0, 20, 60, 64}, Note{0, 20, 60, 70}));
  // The second is cut by the third, so the first may not end with it any more.
  EXPECT_THAT(tidied({{0, 20, 60, 64}, {5, 20, 60, 64}, {8, 30, 60, 64}}),
              ElementsAre(Note{0, 5, 60, 64}, Note{5, 8, 60, 64}, Note{8, 30, 60, 64}));
}

TEST(TidyMusic, RemovesEventsThatAreNoMidi) {
  Music music;
  music.tracks.resize(1);
  music.tracks[0].channel = 3;
  music.tracks[0].events = {{4, "\xB0\x07\x40"}, {2, "\xE1\x01\x02"},
                            {0, "\x90\x3C\x40"}, {0, "\xB0\x07"},
                            {0, "\xB0\x07\xFF"}, {0, ""}};
  music.other = {{0, "\xF0zz\xF7"},
                 {0, "\xFF\x2F"},
                 {0,
                  "\xFF\x7F"
                  "data"},
                 {0, "\xFF"},
                 {0, "x"}};
  tidy(music);
  EXPECT_THAT(music.tracks[0].events,
              ElementsAre(RawEvent{2, "\xE3\x01\x02"}, RawEvent{4, "\xB3\x07\x40"}));
  EXPECT_THAT(music.other, ElementsAre(RawEvent{0, "\xF0zz\xF7"}, RawEvent{0,
                                                                           "\xFF\x7F"
                                                                           "data"}));
  EXPECT_EQ(music.end, 4);
}

TEST(SecondsAt, FollowsTheTempos) {
  Music music;
  music.ticks_per_beat = 10;
  EXPECT_DOUBLE_EQ(seconds_at(music, 20), 1.0);
  music.tempos = {{0, 1000000}, {10, 250000}};
  EXPECT_DOUBLE_EQ(seconds_at(music, 10), 1.0);
  EXPECT_DOUBLE_EQ(seconds_at(music, 30), 1.5);
}

}  // namespace
}  // namespace lagwise::data
