// What every scheme promises, over the registry.

#include "lagwise/data/music/token_scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "lagwise/core/noise.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/grooves.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;

std::vector<std::string> schemes() {
  std::vector<std::string> names;
  for (const TokenSchemeRow& row : token_schemes()) names.emplace_back(row.name);
  names.push_back("groove:velocities=8");
  return names;
}

int64_t pick(const NoiseRow& row, int64_t at, int64_t below) {
  return static_cast<int64_t>(row.uniform(at) * static_cast<double>(below));
}

// Notes anywhere, in tracks of every kind.
Music random_music(uint64_t seed) {
  const NoiseRow row = Noise(seed).at({});
  Music music;
  music.ticks_per_beat = static_cast<int>(1 + pick(row, 0, 2000));
  music.tracks = {{"bass", 0, 0, {}, {}},
                  {"", 9, 0, {}, {}},
                  {"", 2, 20, {}, {}},
                  {"", 3, 33, {}, {}}};
  for (int64_t i = 1; i < 1500; i += 5) {
    const int64_t start = pick(row, i, int64_t{40} * music.ticks_per_beat);
    music.tracks[static_cast<size_t>(pick(row, i + 1, 4))].notes.push_back(
        {start, start + 1 + pick(row, i + 2, int64_t{6} * music.ticks_per_beat),
         static_cast<int>(pick(row, i + 3, 128)),
         static_cast<int>(1 + pick(row, i + 4, 127))});
  }
  music.tempos = {{0, 600000}, {500, 300000}, {501, 200000}};
  music.texts = {{40, Text::kMarker, "C_M_E"}, {40, Text::kMarker, "hello"}};
  music.time_signatures = {{0, 3, 4, 24, 8}};
  tidy(music);
  return music;
}

void expect_legal(const TokenScheme& scheme, const std::vector<int32_t>& ids) {
  const auto grammar = scheme.grammar();
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(scheme.vocabulary().holds(ids[i]));
    ASSERT_TRUE(grammar->legal(ids[i]))
        << i << ": " << scheme.vocabulary().word(ids[i]);
    grammar->advance(ids[i]);
  }
  for (int32_t id = -1; id <= scheme.vocabulary().size(); ++id)
    ASSERT_FALSE(grammar->legal(id)) << "after the end: " << id;
}

TEST(TokenSchemes, AreThere) {
  EXPECT_THAT(schemes(), ::testing::IsSupersetOf({"groove", "remi"}));
  EXPECT_THROW(make_token_scheme("rimi"), std::invalid_argument);
  EXPECT_THROW(make_token_scheme("remi:x=1"), std::invalid_argument);
  EXPECT_THROW(make_token_scheme("groove:velocities=65"), std::invalid_argument);
}

TEST(TokenSchemes, WriteOnlyWhatTheirGrammarAllows) {
  for (const std::string& name : schemes()) {
    const auto scheme = make_token_scheme(name);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Tokenised tokens = scheme->encode(random_music(seed));
      SCOPED_TRACE(name);
      expect_legal(*scheme, tokens.ids);
      EXPECT_EQ(tokens.loss.notes, 300);
      EXPECT_GT(tokens.loss.kept, 100);
      EXPECT_LE(tokens.loss.kept, 300);
      EXPECT_LE(tokens.loss.onset_error, 0.125);
    }
    expect_legal(*scheme, scheme->encode(Music()).ids);
  }
}

TEST(TokenSchemes, DecodeAnyIds) {
  for (const std::string& name : schemes()) {
    const auto scheme = make_token_scheme(name);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const NoiseRow row = Noise(seed).at({});
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < 3000; ++i)
        ids.push_back(
            static_cast<int32_t>(pick(row, i, scheme->vocabulary().size() + 20) - 10));
      std::erase(ids, scheme->vocabulary().id("EOS"));  // else it would soon be over
      const Music music = scheme->decode(ids);
      const std::string file = smf_bytes(music);
      EXPECT_EQ(parse_smf("decoded", bytes_of(file)), music);
      EXPECT_FALSE(scheme->encode(music).ids.empty());
    }
    EXPECT_EQ(scheme->decode({}).tracks[0].notes.size(), 0u);
  }
}

// A model that samples legal tokens at random gets music in which each makes a
// difference: encoding it gives the same number of notes.
// Notes that are taken out as they come are those of decode(): none is told before it is
// complete, none twice, and no token goes back in time.
TEST(TokenSchemes, DecodeTokenByToken) {
  for (const std::string& name : schemes()) {
    SCOPED_TRACE(name);
    const auto scheme = make_token_scheme(name);
    const std::vector<int32_t> ids = scheme->encode(random_music(3)).ids;
    const auto decoder = scheme->decoder();
    Music heard = decoder->music;
    int64_t reached = 0;
    const auto take_out = [&] {
      for (size_t i = 0; i < heard.tracks.size(); ++i) {
        auto& from = decoder->music.tracks[i].notes;
        auto& to = heard.tracks[i].notes;
        to.insert(to.end(), from.begin(), from.end());
        from.clear();
      }
    };
    for (const int32_t id : ids) {
      decoder->take(id);
      EXPECT_GE(decoder->now(), reached);
      reached = decoder->now();
      take_out();
    }
    decoder->finish();
    take_out();
    const Music whole = scheme->decode(ids);
    heard.tempos = whole.tempos, heard.texts = whole.texts, heard.end = whole.end;
    tidy(heard);
    EXPECT_EQ(heard, whole);
  }
}

TEST(TokenSchemes, GrammarsLeadSomewhere) {
  for (const std::string& name : schemes()) {
    const auto scheme = make_token_scheme(name);
    const auto grammar = scheme->grammar();
    const NoiseRow row = Noise(7).at({});
    for (int64_t i = 0; i < 2000; ++i) {
      std::vector<int32_t> legal;
      for (int32_t id = 0; id < scheme->vocabulary().size(); ++id)
        if (grammar->legal(id)) legal.push_back(id);
      ASSERT_FALSE(legal.empty()) << name << " after " << i;
      const int32_t id =
          legal[static_cast<size_t>(pick(row, i, static_cast<int64_t>(legal.size())))];
      if (scheme->vocabulary().word(id).starts_with("EOS")) continue;
      grammar->advance(id);
    }
  }
}

TEST(TokenSchemes, TransposeThereAndBack) {
  for (const std::string& name : schemes()) {
    const auto scheme = make_token_scheme(name);
    Music music;
    music.tracks = {{"", 0, 0, {{0, 480, 60, 64}, {4000, 4800, 64, 64}}, {}},
                    {"", 9, 0, {{0, 480, 36, 64}}, {}}};
    music.texts = {{0, Text::kMarker, "B_m7_A"}};
    const std::vector<int32_t> ids = scheme->encode(music).ids;
    std::vector<int32_t> moved = ids;
    ASSERT_TRUE(scheme->transpose(moved, 5));
    EXPECT_NE(moved, ids);
    Music higher = music;
    for (Note& note : higher.tracks[0].notes) note.pitch += 5;
    higher.texts[0].text = "E_m7_D";
    EXPECT_EQ(moved, scheme->encode(higher).ids) << name;
    ASSERT_TRUE(scheme->transpose(moved, -5));
    EXPECT_EQ(moved, ids);
    EXPECT_FALSE(scheme->transpose(moved, 90));
    EXPECT_EQ(moved, ids);
  }
}

TEST(TokenSchemes, KnowTheEnd) {
  for (const std::string& name : schemes()) {
    const auto scheme = make_token_scheme(name);
    const std::vector<int32_t> ids = scheme->encode(Grooves().song(0)).ids;
    EXPECT_EQ(std::count(ids.begin(), ids.end(), scheme->end()), 1) << name;
    EXPECT_EQ(ids.back(), scheme->end()) << name;
  }
}

TEST(TokenSchemes, KnowWhereBarsBegin) {
  Music music;
  music.ticks_per_beat = 12;
  music.tracks = {{"piano", 0, 0, {}, {}}};
  for (const int64_t bar : {0, 1, 3, 4})  // nothing happens in bar 2
    music.tracks[0].notes.push_back(
        {48 * bar + (bar == 3 ? 6 : 0), 48 * bar + 12, 60, 80});
  tidy(music);
  const auto text = [&](const char* name) {
    const auto scheme = make_token_scheme(name);
    const std::vector<int32_t> ids = scheme->encode(music).ids;
    std::string words;
    for (const int64_t at : scheme->bar_starts(ids))
      words += std::to_string(at) + " " +
               scheme->vocabulary().word(ids[static_cast<size_t>(at)]) + ", ";
    return words;
  };
  EXPECT_EQ(text("remi"),
            "0 Bar_None, 5 Bar_None, 10 Bar_None, 11 Bar_None, 16 Bar_None, ");
  EXPECT_EQ(text("groove"),
            "0 BOS, 5 Shift_1_0, 10 Shift_2_0, 12 Shift_1_6, 17 Shift_1_0, ");
}

TEST(TokenSchemes, TokeniseEveryRealFile) {
  const TempFolder scratch;
  const std::vector<std::string> names = schemes();
  for (const char* set : {"pop909", "groove_midi", "nottingham"}) {
    const std::string folder = real_data(set, scratch);
    LAGWISE_NEEDS_DATA(folder, set);
    for (const std::string& file : midi_files(folder)) {
      const Music music = read_smf(file);
      for (const std::string& name : names) {
        SCOPED_TRACE(name + " " + file);
        const auto scheme = make_token_scheme(name);
        expect_legal(*scheme, scheme->encode(music).ids);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(TokenScheme, IsFoundByItsWords) {
  for (const char* text : {"remi", "groove", "groove:velocities=5"}) {
    const auto scheme = make_token_scheme(text);
    const auto found = token_scheme_of(scheme->vocabulary().words());
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(found->vocabulary().hash(), scheme->vocabulary().hash());
  }
  EXPECT_FALSE(token_scheme_of({"a", "b"}));
}

TEST(TokenSchemes, CutAfterBars) {
  for (const std::string& name : schemes()) {
    const auto scheme = make_token_scheme(name);
    for (const int64_t bars : {1, 2, 7}) {
      SCOPED_TRACE(name + ", bars " + std::to_string(bars));
      const std::vector<int32_t> ids = scheme->encode(random_music(4)).ids;
      const auto count = static_cast<size_t>(scheme->first_bars(ids, bars));
      ASSERT_LT(count, ids.size());
      const Music whole = scheme->decode(ids);
      // With the step beyond the line, before which the last notes have no length yet.
      const Music part = scheme->decode(std::span(ids).first(count + 1));
      const int64_t line = bars * 4 * whole.ticks_per_beat;
      // All that begins before the bar line is there, and nothing that begins later.
      for (size_t t = 0; t < whole.tracks.size(); ++t) {
        const auto& notes = whole.tracks[t].notes;
        EXPECT_EQ(std::ssize(part.tracks[t].notes),
                  std::ranges::count_if(
                      notes, [&](const Note& note) { return note.start < line; }));
      }
      // The next token leads to the line or beyond.
      const auto decoder = scheme->decoder();
      for (size_t i = 0; i <= count; ++i) {
        EXPECT_LT(decoder->now(), line);
        decoder->take(ids[i]);
      }
      EXPECT_GE(decoder->now(), line);
    }
  }
}

TEST(TokenSchemes, HaveNoMoreBarsThanThePiece) {
  for (const std::string& name : schemes()) {
    SCOPED_TRACE(name);
    const auto scheme = make_token_scheme(name);
    const std::vector<int32_t> ids = scheme->encode(random_music(4)).ids;
    for (const int64_t many : {int64_t{1000}, std::numeric_limits<int64_t>::max()})
      EXPECT_EQ(scheme->first_bars(ids, many), std::ssize(ids) - 1);  // without its end
    EXPECT_EQ(scheme->first_bars({}, 3), 0);
  }
}

// A step over a whole silent bar leads past two lines at once.
TEST(TokenSchemes, CountSilentBars) {
  Music music;
  music.ticks_per_beat = 12;
  music.tracks = {{"bass", 1, 33, {}, {}}};
  for (const int64_t beat : {0, 1, 13, 14, 16})
    music.tracks[0].notes.push_back({12 * beat, 12 * beat + 6, 40, 80});
  tidy(music);
  for (const std::string& name : schemes()) {
    SCOPED_TRACE(name);
    const auto scheme = make_token_scheme(name);
    const std::vector<int32_t> ids = scheme->encode(music).ids;
    const auto notes = [&](int64_t bars) {
      const auto count = static_cast<size_t>(scheme->first_bars(ids, bars));
      return scheme->decode(std::span(ids).first(count)).tracks[0].notes.size();
    };
    EXPECT_EQ(notes(1), 2u);
    EXPECT_EQ(notes(3), 2u);
    EXPECT_EQ(notes(4), 4u);
  }
}

}  // namespace
}  // namespace lagwise::data
