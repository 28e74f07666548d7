#include "lagwise/data/music/style_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "lagwise/data/music/grooves.h"

namespace lagwise::data {
namespace {

// Two lists of notes, 12 ticks a beat, with what the reference code made of them.
struct Golden {
  int64_t start, length;
  int pitch;
};
constexpr Golden kNotesA[] = {
    {0, 15, 76},   {11, 18, 83},  {20, 21, 49},  {30, 2, 72},   {34, 24, 66},
    {37, 12, 60},  {44, 15, 69},  {49, 25, 75},  {49, 12, 37},  {51, 20, 75},
    {52, 29, 55},  {54, 9, 41},   {54, 26, 57},  {56, 5, 61},   {56, 24, 82},
    {56, 5, 42},   {57, 29, 46},  {62, 5, 48},   {64, 20, 56},  {66, 19, 37},
    {66, 12, 82},  {74, 5, 43},   {81, 10, 41},  {85, 16, 43},  {94, 25, 48},
    {95, 22, 74},  {101, 16, 45}, {107, 26, 67}, {107, 17, 41}, {108, 5, 75},
    {110, 3, 55},  {112, 7, 67},  {113, 14, 36}, {118, 22, 73}, {124, 19, 73},
    {131, 28, 75}, {133, 26, 70}, {136, 6, 83},  {137, 13, 64}, {138, 3, 36},
    {143, 7, 65},  {145, 3, 62},  {151, 25, 50}, {152, 1, 37},  {154, 16, 63},
    {157, 27, 37}, {157, 2, 76},  {157, 22, 59}, {158, 11, 70}, {158, 14, 40},
    {160, 19, 61}, {161, 5, 58},  {166, 17, 62}, {166, 22, 42}, {167, 17, 41},
    {172, 14, 48}, {172, 25, 50}, {176, 28, 56}, {183, 9, 50},  {185, 8, 49}};
constexpr Golden kNotesB[] = {
    {0, 22, 58},   {13, 11, 54},  {14, 18, 65},  {16, 15, 58},  {20, 2, 44},
    {24, 9, 73},   {25, 20, 39},  {26, 14, 66},  {28, 15, 65},  {29, 1, 37},
    {33, 26, 77},  {33, 19, 82},  {46, 2, 76},   {53, 7, 46},   {57, 10, 60},
    {58, 11, 81},  {62, 19, 64},  {64, 27, 36},  {67, 21, 53},  {68, 18, 49},
    {70, 9, 74},   {82, 12, 74},  {83, 2, 69},   {83, 22, 62},  {85, 11, 40},
    {85, 12, 62},  {89, 12, 39},  {94, 15, 36},  {98, 11, 82},  {99, 7, 43},
    {106, 21, 53}, {125, 7, 63},  {133, 19, 66}, {140, 26, 79}, {141, 3, 52},
    {143, 21, 54}, {147, 22, 61}, {165, 18, 80}, {168, 7, 59},  {172, 27, 56},
    {173, 17, 60}, {178, 29, 81}, {179, 15, 75}, {184, 10, 57}, {188, 29, 70}};

struct Count {
  size_t bin;
  double count;
};
// Of the first list, the bins with more than one count.
constexpr Count kTimePitchA[] = {
    {0, 3},   {9, 3},   {12, 2},  {24, 3},  {25, 2},  {31, 2},  {46, 2},  {49, 2},
    {57, 2},  {62, 2},  {109, 2}, {113, 2}, {121, 2}, {140, 2}, {141, 2}, {147, 3},
    {154, 2}, {158, 2}, {159, 2}, {160, 2}, {171, 2}, {177, 2}, {178, 3}, {186, 2},
    {193, 2}, {195, 3}, {203, 2}, {204, 2}, {205, 2}, {210, 2}, {215, 3}, {217, 2},
    {229, 2}, {257, 2}, {268, 2}, {270, 2}, {271, 2}, {276, 2}, {294, 2}, {307, 3},
    {317, 2}, {321, 2}, {322, 3}, {333, 2}, {334, 2}, {337, 2}, {363, 3}, {364, 2},
    {367, 2}, {371, 2}, {372, 2}, {375, 2}, {415, 2}, {416, 2}, {419, 2}, {427, 2},
    {435, 2}, {437, 2}, {442, 2}, {456, 2}, {462, 2}, {477, 2}, {478, 2}, {479, 3},
    {482, 2}, {485, 2}, {490, 2}, {492, 3}, {495, 2}, {507, 2}, {508, 2}, {510, 4},
    {513, 3}, {529, 3}, {556, 2}, {562, 2}, {574, 2}, {578, 2}, {583, 2}, {585, 2},
    {599, 2}, {604, 2}, {607, 2}, {626, 2}, {627, 4}, {636, 3}, {642, 2}, {650, 2},
    {655, 2}, {672, 2}, {681, 2}, {689, 2}, {699, 2}, {704, 2}, {709, 2}, {718, 2},
    {751, 2}, {785, 2}, {793, 3}, {822, 2}, {844, 2}, {913, 2}, {945, 2}, {958, 2}};
constexpr Count kOnsetDurationA[] = {{50, 2}, {68, 2}, {140, 2}, {143, 2}};

std::vector<Note> notes_of(std::span<const Golden> golden) {
  std::vector<Note> notes;
  for (const Golden& g : golden)
    notes.push_back({g.start, g.start + g.length, g.pitch, 64});
  return notes;
}

void expect_counts(const StyleProfile& profile, std::span<const Count> above_one,
                   double total, int filled) {
  EXPECT_EQ(std::accumulate(profile.begin(), profile.end(), 0.0), total);
  EXPECT_EQ(
      std::count_if(profile.begin(), profile.end(), [](double x) { return x > 0; }),
      filled);
  EXPECT_EQ(
      std::count_if(profile.begin(), profile.end(), [](double x) { return x > 1; }),
      static_cast<int64_t>(above_one.size()));
  for (const Count& want : above_one)
    EXPECT_EQ(profile[want.bin], want.count) << want.bin;
}

TEST(StyleProfile, CountsAsTheReferenceDoes) {
  expect_counts(time_pitch_profile(notes_of(kNotesA), 12), kTimePitchA, 534, 410);
  expect_counts(onset_duration_profile(notes_of(kNotesA), 12), kOnsetDurationA, 48, 44);
}

TEST(StyleProfile, HasTheCosinesOfTheReference) {
  const auto a = notes_of(kNotesA), b = notes_of(kNotesB);
  EXPECT_NEAR(cosine_similarity(time_pitch_profile(a, 12), time_pitch_profile(b, 12)),
              0.2581346454399341, 1e-14);
  EXPECT_NEAR(
      cosine_similarity(onset_duration_profile(a, 12), onset_duration_profile(b, 12)),
      0.10189239324240267, 1e-14);
}

TEST(StyleProfile, CountsAPairWithinFourBeats) {
  const StyleProfile one =
      time_pitch_profile(std::vector<Note>{{0, 1, 60, 64}, {47, 48, 63, 64}}, 12);
  EXPECT_EQ(one[23 * 24 + 23], 1);
  const StyleProfile none =
      time_pitch_profile(std::vector<Note>{{0, 1, 60, 64}, {48, 49, 63, 64}}, 12);
  EXPECT_EQ(std::accumulate(none.begin(), none.end(), 0.0), 0);
  const StyleProfile chord =
      time_pitch_profile(std::vector<Note>{{0, 1, 60, 64}, {0, 1, 64, 64}}, 12);
  EXPECT_EQ(chord[size_t{24} * 24], 1);  // four up
  EXPECT_EQ(chord[size_t{16} * 24], 1);  // four down
}

TEST(StyleProfile, IsEmptyWithoutNotes) {
  EXPECT_EQ(cosine_similarity(time_pitch_profile({}, 12), time_pitch_profile({}, 12)),
            0);
  EXPECT_EQ(note_statistics(Music()).notes_per_beat, 0);
}

TEST(StyleSimilarity, IsHigherWithinAStyle) {
  const Grooves grooves;
  double same = 0, other = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const Music source = grooves.song(i);
    const auto alike = style_similarity(grooves.song(i + 24), source).onset_duration;
    const auto unlike = style_similarity(grooves.song(i + 25), source).onset_duration;
    same += std::accumulate(alike.begin(), alike.end(), 0.0) / 48;
    other += std::accumulate(unlike.begin(), unlike.end(), 0.0) / 48;
  }
  EXPECT_GT(same, other + 0.2);
  const StyleSimilarity self = style_similarity(grooves.song(3), grooves.song(3));
  for (const double one : self.time_pitch) EXPECT_GT(one, 0.65);
}

TEST(StyleSimilarity, OfSilenceIsNoNumber) {
  const Grooves grooves;
  const StyleSimilarity none = style_similarity(Music(), grooves.song(0));
  for (size_t q = 0; q < 4; ++q)
    EXPECT_TRUE(std::isnan(none.time_pitch[q]) && std::isnan(none.onset_duration[q]) &&
                std::isnan(none.onset_drum[q]));
}

// Three tracks of 16 beats: a bass that plays every beat, chords every other one,
// drums.
Music trio(int bass_step, int64_t bass_until = 16) {
  Music music;
  music.ticks_per_beat = 12;
  Track bass{"bass", 0, 33, {}, {}}, chords{"chords", 1, 4, {}, {}},
      drums{"drums", 9, 0, {}, {}};
  for (int64_t beat = 0; beat < 16; ++beat) {
    const int64_t at = 12 * beat;
    if (beat < bass_until)
      bass.notes.push_back({at, at + 6, 40 + int(beat % 4) * bass_step, 64});
    if (beat % 2 == 0) chords.notes.push_back({at, at + 12, 60 + int(beat % 3), 64});
    drums.notes.push_back({at, at + 1, 36 + int(beat % 2), 64});
  }
  music.tracks = {bass, chords, drums};
  music.end = int64_t{12} * 16;
  return music;
}

TEST(StyleSimilarity, LeavesDrumsOutOfTheMelodicFigures) {
  const Music source = trio(2), same = trio(2);
  Music other = same;
  for (Note& note : other.tracks[2].notes) note.pitch += 5, note.end += 3;
  const StyleSimilarity a = style_similarity(same, source),
                        b = style_similarity(other, source);
  EXPECT_EQ(a.time_pitch, b.time_pitch);
  EXPECT_EQ(a.onset_duration, b.onset_duration);
  for (size_t q = 0; q < 4; ++q) {
    EXPECT_NEAR(a.onset_drum[q], 1, 1e-12);
    EXPECT_EQ(b.onset_drum[q], 0);
  }
  Music drums_alone = source;
  drums_alone.tracks.erase(drums_alone.tracks.begin(), drums_alone.tracks.begin() + 2);
  const StyleSimilarity c = style_similarity(same, drums_alone);
  EXPECT_TRUE(std::isnan(c.time_pitch[0]) && std::isnan(c.onset_duration[0]));
  EXPECT_EQ(c.onset_drum, a.onset_drum);
}

TEST(StyleSimilarity, LeavesOutTheQuartersInWhichATrackIsSilent) {
  const Music source = trio(2);
  const StyleSimilarity whole = style_similarity(trio(2), source);
  // A bass that stops half way: from there on the chords alone are judged.
  const StyleSimilarity half = style_similarity(trio(2, 8), source);
  Music chords = source;
  chords.tracks.erase(chords.tracks.begin());
  const StyleSimilarity without = style_similarity(chords, source);
  for (size_t q = 0; q < 4; ++q) {
    EXPECT_DOUBLE_EQ(half.time_pitch[q], (q < 2 ? whole : without).time_pitch[q]);
    EXPECT_DOUBLE_EQ(half.onset_duration[q],
                     (q < 2 ? whole : without).onset_duration[q]);
  }
  EXPECT_NE(whole.time_pitch[3], without.time_pitch[3]);
}

TEST(NoteStatistics, AreMeans) {
  Music music;
  music.ticks_per_beat = 10;
  music.tracks = {{"", 0, 0, {{0, 10, 60, 64}, {10, 20, 64, 64}}, {}},
                  {"", 9, 0, {{0, 40, 36, 64}}, {}}};
  tidy(music);
  const NoteStatistics statistics = note_statistics(music);
  EXPECT_DOUBLE_EQ(statistics.notes_per_beat, 0.75);
  EXPECT_DOUBLE_EQ(statistics.mean_pitch, 62);
  EXPECT_DOUBLE_EQ(statistics.pitch_spread, 2);
  EXPECT_DOUBLE_EQ(statistics.mean_duration, 2);
}

}  // namespace
}  // namespace lagwise::data
