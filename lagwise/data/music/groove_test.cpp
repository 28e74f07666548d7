#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/music/token_scheme.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::string words(const TokenScheme& scheme, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids)
    text += (text.empty() ? "" : " ") + scheme.vocabulary().word(id);
  return text;
}

Music trio() {
  Music music;
  music.ticks_per_beat = 24;
  music.tracks = {{"", 0, 35, {{0, 24, 40, 100}}, {}},
                  {"", 9, 0, {{0, 1, 36, 90}, {25, 30, 38, 10}}, {}},
                  {"", 3, 80, {{12, 108, 60, 64}}, {}}};
  return music;
}

TEST(Groove, HasTheWordsOfThePaper) {
  const auto scheme = make_token_scheme("groove");
  EXPECT_EQ(scheme->vocabulary().size(), 794);
  EXPECT_EQ(make_token_scheme("groove:velocities=8")->vocabulary().size(), 802);
  EXPECT_EQ(scheme->vocabulary().word(768), "Shift_0_1");
  EXPECT_EQ(scheme->vocabulary().word(779), "Shift_1_0");
  EXPECT_EQ(scheme->vocabulary().word(791), "Shift_2_0");
}

TEST(Groove, SaysTimeByTheBeat) {
  const auto scheme = make_token_scheme("groove");
  EXPECT_EQ(words(*scheme, scheme->encode(trio()).ids),
            "BOS On_bass_40 On_drums_36 Shift_0_1 Off_drums_36 Shift_0_6 On_chords_60 "
            "Shift_1_0 Off_bass_40 Shift_0_1 On_drums_38 Shift_0_3 Off_drums_38 "
            "Shift_2_0 Shift_1_6 Off_chords_60 EOS");
}

TEST(Groove, SaysVelocitiesIfAsked) {
  const auto scheme = make_token_scheme("groove:velocities=8");
  Music music = trio();
  music.tracks.resize(1);
  EXPECT_EQ(words(*scheme, scheme->encode(music).ids),
            "BOS Velocity_6 On_bass_40 Shift_1_0 Off_bass_40 EOS");
  EXPECT_EQ(scheme->decode(scheme->encode(music).ids).tracks[0].notes[0].velocity, 104);
}

TEST(Groove, DecodesToTheQuantisedNotes) {
  const auto scheme = make_token_scheme("groove");
  const Music music = scheme->decode(scheme->encode(trio()).ids);
  ASSERT_EQ(music.tracks.size(), 3u);
  EXPECT_THAT(music.tracks[0].notes, ElementsAre(Note{0, 480, 40, 80}));
  EXPECT_THAT(music.tracks[1].notes,
              ElementsAre(Note{0, 40, 36, 80}, Note{520, 600, 38, 80}));
  EXPECT_THAT(music.tracks[2].notes, ElementsAre(Note{240, 2160, 60, 80}));
  EXPECT_TRUE(music.tracks[1].drums());
  EXPECT_EQ(scheme->encode(music).ids, scheme->encode(trio()).ids);
}

TEST(Groove, MergesTracksByName) {
  const auto scheme = make_token_scheme("groove");
  Music music = trio();
  music.tracks.push_back({"", 5, 0, {{12, 30, 60, 64}, {40, 60, 60, 64}}, {}});
  music.tempos = {{0, 500000}, {10, 400000}};
  const Tokenised tokens = scheme->encode(music);
  EXPECT_THAT(tokens.loss.changed,
              ElementsAre(Pair("further tracks, merged into chords", 1),
                          Pair("notes that double another, dropped", 1),
                          Pair("tempo changes, dropped", 1)));
  EXPECT_EQ(tokens.loss.notes, 6);
  EXPECT_EQ(tokens.loss.kept, 5);
  EXPECT_THAT(scheme->decode(tokens.ids).tracks[2].notes,
              ElementsAre(Note{240, 800, 60, 80}, Note{800, 1200, 60, 80}));
}

TEST(Groove, PassesOverWhatMakesNoSense) {
  const auto scheme = make_token_scheme("groove");
  const auto& vocabulary = scheme->vocabulary();
  std::vector<int32_t> ids;
  for (const char* word : {"Off_bass_40", "Shift_0_6", "On_bass_40", "Shift_0_3",
                           "On_bass_40", "Shift_1_0", "On_bass_40", "Shift_0_6"})
    ids.push_back(vocabulary.id(word));
  EXPECT_THAT(scheme->decode(ids).tracks[0].notes,
              ElementsAre(Note{240, 480, 40, 80}, Note{480, 720, 40, 80}));
}

}  // namespace
}  // namespace lagwise::data
