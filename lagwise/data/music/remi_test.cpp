#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/token_scheme.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using namespace lagwise::testing;

const TokenScheme& remi() {
  static const auto scheme = make_token_scheme("remi");
  return *scheme;
}

std::string words(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += remi().vocabulary().word(id) + "\n";
  return text;
}

std::vector<int32_t> ids_of(const std::string& text) {
  std::vector<int32_t> ids;
  std::istringstream in(text);
  for (std::string word; in >> word;) ids.push_back(remi().vocabulary().id(word));
  return ids;
}

Music piece(std::vector<Note> notes) {
  Music music;
  music.tracks = {{"", 0, 0, std::move(notes), {}}};
  return music;
}

TEST(Remi, SaysAPiece) {
  Music music =
      piece({{1915, 2400, 60, 41}, {1915, 1940, 72, 200}, {3000, 9000, 50, 12}});
  music.tempos = {{0, 500000}, {3000, 402000}};
  music.texts = {{0, Text::kMarker, "global_bpm_120"},
                 {1930, Text::kMarker, "F#_sus4_C"}};
  EXPECT_EQ(words(remi().encode(music).ids),
            "Bar_None\nBeat_0\nChord_F#_sus4\nTempo_119\n"
            "Note_Pitch_72\nNote_Velocity_86\nNote_Duration_0\n"
            "Note_Pitch_60\nNote_Velocity_40\nNote_Duration_480\n"
            "Beat_9\nTempo_149\nNote_Pitch_50\nNote_Velocity_40\nNote_Duration_1920\n"
            "Bar_None\nEOS_None\n");
}

TEST(Remi, NamesWhatItCannotSay) {
  Music music = piece({{0, 480, 10, 60}, {0, 480, 60, 60}, {1920, 2400, 60, 60}});
  music.tracks.push_back({"", 9, 0, {{0, 10, 36, 60}}, {}});
  music.tracks.push_back({"", 1, 40, {{0, 10, 36, 120}}, {}});
  music.time_signatures = {{0, 3, 4, 24, 8}, {10, 4, 4, 24, 8}};
  music.texts = {{0, Text::kMarker, "verse"}};
  music.tempos = {{0, 394737}};  // 152
  const TokenLoss loss = remi().encode(music).loss;
  EXPECT_EQ(loss.notes, 5);
  EXPECT_EQ(loss.kept, 2);
  EXPECT_THAT(
      loss.changed,
      ElementsAre(Pair("drum notes, dropped", 1), Pair("further tracks, merged", 1),
                  Pair("markers that are no chord, dropped", 1),
                  Pair("notes on or after the last bar line, dropped", 1),
                  Pair("pitches outside 22 to 107, dropped", 1),
                  Pair("tempos without a word, slowed to the next", 1),
                  Pair("time signatures, read as 4/4", 1),
                  Pair("tracks of other instruments, given to the piano", 1),
                  Pair("velocities above 86, softened", 1)));
}

TEST(Remi, MeasuresWhatTheGridCosts) {
  const TokenLoss loss =
      remi().encode(piece({{48, 528, 60, 61}, {120, 360, 62, 60}})).loss;
  EXPECT_DOUBLE_EQ(loss.onset_error, 0.05);
  EXPECT_DOUBLE_EQ(loss.duration_error, 0);
  EXPECT_DOUBLE_EQ(loss.velocity_error, 0.5);
}

TEST(Remi, DecodesToTheQuantisedNotes) {
  const Music music =
      remi().decode(remi().encode(piece({{50, 528, 60, 61}, {70, 90, 62, 60}})).ids);
  EXPECT_THAT(music.tracks[0].notes,
              ElementsAre(Note{0, 480, 60, 60}, Note{120, 180, 62, 60}));
}

TEST(Remi, DropsWhatIsHalfSaid) {
  const Music music = remi().decode(ids_of(
      "Beat_3 Note_Pitch_50 Note_Velocity_60 Note_Duration_480 "  // before any bar
      "Bar_None Beat_4 Tempo_119 Chord_C_M Note_Pitch_60 Note_Pitch_61 "
      "Note_Velocity_60 "
      "Note_Duration_480 Note_Duration_240 Note_Velocity_44 Note_Duration_480 "
      "Note_Pitch_62 Note_Velocity_60 Beat_5 Note_Duration_480 EOS_None "
      "Note_Pitch_63 Note_Velocity_60 Note_Duration_480"));
  EXPECT_THAT(music.tracks[0].notes, ElementsAre(Note{480, 960, 61, 60}));
  EXPECT_THAT(music.tempos, ElementsAre(Tempo{480, 504202}));
  EXPECT_THAT(music.texts, ElementsAre(Text{480, Text::kMarker, "C_M_C"}));
}

struct RealRemi : ::testing::Test {
  const TempFolder scratch;
  const std::string folder = real_data("pop1k7", scratch);
};

TEST_F(RealRemi, HasTheVocabularyOfTheOriginal) {
  LAGWISE_NEEDS_DATA(folder, "pop1k7");
  const auto original = nlohmann::json::parse(contents(folder + "/remi_vocab.json"));
  ASSERT_EQ(original.size(), 332u);
  EXPECT_EQ(remi().vocabulary().size(), 332);
  for (const auto& [word, id] : original.items())
    EXPECT_EQ(remi().vocabulary().id(word), id.get<int32_t>()) << word;
}

TEST_F(RealRemi, EqualsTheOriginalTokenForToken) {
  LAGWISE_NEEDS_DATA(folder, "pop1k7");
  int pieces = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder + "/remi_expected")) {
    const std::string number = entry.path().stem().stem();
    std::string file = folder + "/train/" + number + ".mid";
    if (!std::filesystem::exists(file)) file = folder + "/val/" + number + ".mid";
    EXPECT_EQ(words(remi().encode(read_smf(file)).ids), contents(entry.path())) << file;
    ++pieces;
  }
  EXPECT_EQ(pieces, 20);
}

// Pitches, velocities and chords outside the vocabulary would be counted as changed.
TEST_F(RealRemi, HasAWordForEverythingInPop1K7) {
  LAGWISE_NEEDS_DATA(folder, "pop1k7");
  TokenLoss loss;
  int64_t tokens = 0;
  for (const std::string& file : midi_files(folder + "/train")) {
    const Tokenised piece = remi().encode(read_smf(file));
    tokens += static_cast<int64_t>(piece.ids.size());
    loss.add(piece.loss);
  }
  loss.changed.erase("notes on or after the last bar line, dropped");
  EXPECT_TRUE(loss.changed.empty()) << loss.changed.begin()->first;
  RecordProperty("tokens", std::to_string(tokens));
  RecordProperty("onset_error_beats", std::to_string(loss.onset_error));
  RecordProperty("duration_error_beats", std::to_string(loss.duration_error));
  EXPECT_GT(tokens, 400000);
}

}  // namespace
}  // namespace lagwise::data
