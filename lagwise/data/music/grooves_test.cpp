#include "lagwise/data/music/grooves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/token_scheme.h"

namespace lagwise::data {
namespace {

using ::testing::IsEmpty;

TEST(GrooveStyle, HasLinesAsLongAsItsBar) {
  const Grooves grooves(200, 3);
  for (int number = 0; number < 200; ++number) {
    const GrooveStyle style = grooves.style(number);
    const auto steps = size_t{4} * static_cast<size_t>(style.beats);
    for (size_t i = 0; i < 2; ++i) {
      for (const std::string* line :
           {&style.drums[i].kick, &style.drums[i].snare, &style.drums[i].hat,
            &style.bass[i], &style.comping[i]})
        ASSERT_EQ(line->size(), steps) << style.name << " " << *line;
      EXPECT_EQ(style.bass[i].find_first_not_of("rfota-."), std::string::npos)
          << style.name;
    }
    EXPECT_GE(style.fill.size(), steps / 2);
    EXPECT_FALSE(style.progressions[2].empty());
  }
}

// Written once by this generator: it must never change.
TEST(Grooves, GivesTheSameBytesEverywhere) {
  uint64_t hash = kFnv1aStart;
  for (int64_t i = 0; i < 24; ++i)
    hash = fnv1a(bytes_of(smf_bytes(Grooves(24, 1).song(i))), hash);
  EXPECT_EQ(hash_text(hash), "41a85fa59feff5d9");
}

TEST(Grooves, SurvivesTheTokenScheme) {
  const auto scheme = make_token_scheme("groove");
  const Grooves grooves;
  for (int64_t i = 0; i < 48; ++i) {
    const Music music = grooves.song(i);
    const Tokenised tokens = scheme->encode(music);
    EXPECT_THAT(tokens.loss.changed, IsEmpty());
    EXPECT_EQ(tokens.loss.kept, tokens.loss.notes);
    EXPECT_NEAR(tokens.loss.onset_error + tokens.loss.duration_error, 0, 1e-9);
    EXPECT_GT(tokens.ids.size(), 1000u) << i;
    EXPECT_EQ(parse_smf("song", bytes_of(smf_bytes(music))), music);
  }
}

TEST(Grooves, HasAsManyStylesAsAsked) {
  const Grooves grooves(24, 1);
  std::set<std::string> patterns;
  for (int i = 0; i < 24; ++i) {
    const GrooveStyle style = grooves.style(i);
    patterns.insert(style.drums[0].kick + style.drums[0].snare + style.drums[0].hat +
                    style.bass[0] + style.comping[0]);
  }
  EXPECT_EQ(patterns.size(), 24u);
  EXPECT_THROW(Grooves(0), std::invalid_argument);
  EXPECT_THROW(grooves.song(-1), std::invalid_argument);
}

// The drums of two songs: the share of the bar's places at which both or neither hit.
double likeness(const Music& a, const Music& b) {
  const auto places = [](const Music& music) {
    const int64_t bar = int64_t{480} * music.time_signatures[0].numerator;
    const int64_t bars = music.end / bar;
    std::map<std::pair<int64_t, int>, double> shares;
    for (const Note& note : music.tracks[0].notes)
      shares[{note.start % bar, note.pitch}] += 1 / static_cast<double>(bars);
    return shares;
  };
  auto both = places(a);
  double difference = 0, all = 0;
  for (const auto& [place, share] : places(b)) both[place] -= share, all += share;
  for (const auto& [place, share] : places(a)) all += share;
  for (const auto& [place, rest] : both) difference += std::abs(rest);
  return 1 - difference / all;
}

TEST(Grooves, SongsOfAStyleAreMoreAlikeThanOthers) {
  const Grooves grooves(24, 1);
  double same = 0, other = 0;
  for (int64_t i = 0; i < 24; ++i) {
    same += likeness(grooves.song(i), grooves.song(i + 24)) / 24;
    other += likeness(grooves.song(i), grooves.song(i + 25)) / 24;
  }
  EXPECT_GT(same, 0.8);
  EXPECT_LT(other, 0.5);
}

TEST(Grooves, ASectionThatComesBackIsTheSame) {
  const Music music = Grooves(24, 1).song(0);
  std::map<std::string, std::vector<int64_t>> sections;
  for (const Text& text : music.texts)
    if (text.kind == Text::kMarker) sections[text.text].push_back(text.tick);
  ASSERT_GE(sections["A"].size(), 2u);
  const auto chords_from = [&](int64_t start) {
    std::vector<std::pair<int64_t, int>> notes;
    for (const Note& note : music.tracks[2].notes)
      if (note.start >= start && note.start < start + 4 * 1440)
        notes.emplace_back(note.start - start, note.pitch);
    return notes;
  };
  EXPECT_EQ(chords_from(sections["A"].front()), chords_from(sections["A"].back()));
}

}  // namespace
}  // namespace lagwise::data
