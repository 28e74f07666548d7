#include "lagwise/train/continuations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/data/music/grooves.h"

namespace lagwise {
namespace {

std::vector<int32_t> song(int64_t index) {
  return data::make_token_scheme("groove")->encode(data::Grooves().song(index)).ids;
}

Continuation continued(int64_t index, const std::vector<int32_t>& by, int64_t length) {
  Continuation one{song(index), 100, {}};
  one.written.assign(by.begin() + 100, by.begin() + 100 + length);
  return one;
}

TEST(MusicAfter, KeepsPlacesInTheBar) {
  const auto scheme = data::make_token_scheme("groove");
  const std::vector<int32_t> ids = song(0);
  const data::Music whole = scheme->decode(ids), after = music_after(*scheme, ids, 200);
  const int64_t bar = int64_t{4} * whole.ticks_per_beat;
  EXPECT_GT(after.end, 0);
  EXPECT_EQ((whole.end - after.end) % bar, 0);
  EXPECT_LT(after.end, whole.end);
  for (size_t t = 0; t < whole.tracks.size(); ++t) {
    const auto &all = whole.tracks[t].notes, &some = after.tracks[t].notes;
    ASSERT_LT(some.size(), all.size());
    for (size_t i = 0; i < some.size(); ++i) {
      const data::Note& original = all[all.size() - some.size() + i];
      EXPECT_EQ(original.start - some[i].start, whole.end - after.end);
      EXPECT_EQ(original.pitch, some[i].pitch);
    }
  }
  EXPECT_EQ(music_after(*scheme, ids, 0).tracks, whole.tracks);
}

// Notes of a prompt may sound on beyond it: what is written below them counts.
TEST(MusicAfter, BeginsWhereThePromptEndsToTell) {
  const auto scheme = data::make_token_scheme("remi");
  data::Music music;
  music.ticks_per_beat = 480;
  music.tracks = {{"piano", 0, 0, {}, {}}};
  for (int64_t beat = 0; beat < 16; ++beat)
    music.tracks[0].notes.push_back(
        {480 * beat, 480 * (beat + 4), 60 + static_cast<int>(beat), 80});
  data::tidy(music);
  const std::vector<int32_t> ids = scheme->encode(music).ids;
  const data::Music after = music_after(*scheme, ids, scheme->first_bars(ids, 2));
  ASSERT_EQ(after.tracks[0].notes.size(), 8u);  // of the last two bars
  EXPECT_EQ(after.tracks[0].notes[0].pitch, 68);
  EXPECT_EQ(after.tracks[0].notes[0].start, 0);
}

TEST(Continuations, OfTheSourceItselfAreTheTruth) {
  const auto scheme = data::make_token_scheme("groove");
  std::vector<Continuation> all;
  for (int64_t i = 0; i < 6; ++i) all.push_back(continued(i, song(i), 800));
  const ContinuationFigures figures = judge_continuations(*scheme, all);
  EXPECT_EQ(figures.count, 6);
  EXPECT_EQ(figures.written_notes.mean_pitch, figures.true_notes.mean_pitch);
  for (size_t q = 0; q < 4; ++q) {
    const Interval mine = figures.written.time_pitch[q],
                   truth = figures.truth.time_pitch[q];
    EXPECT_EQ(mine.mean, truth.mean);
    EXPECT_EQ(mine.error, truth.error);
    EXPECT_GT(truth.error, 0);
    EXPECT_GT(truth.mean, figures.shuffled.time_pitch[q].mean);
    EXPECT_GT(figures.truth.onset_duration[q].mean,
              figures.shuffled.onset_duration[q].mean + 0.1);
    EXPECT_GT(figures.truth.onset_drum[q].mean, figures.shuffled.onset_drum[q].mean);
    EXPECT_EQ(figures.truth.onset_drum[q].counted, 6);
  }
}

TEST(Continuations, InAnotherStyleAreUnlikeTheirSource) {
  const auto scheme = data::make_token_scheme("groove");
  std::vector<Continuation> right, wrong;
  for (int64_t i = 0; i < 6; ++i) {
    right.push_back(continued(i, song(i), 800));
    wrong.push_back(continued(i, song(i + 3), 800));
  }
  const auto good = judge_continuations(*scheme, right);
  const auto bad = judge_continuations(*scheme, wrong);
  for (size_t q = 0; q < 4; ++q)
    EXPECT_GT(good.written.onset_duration[q].mean,
              bad.written.onset_duration[q].mean + 0.1);
  EXPECT_EQ(good.truth.time_pitch[3].mean, bad.truth.time_pitch[3].mean);
}

TEST(Continuations, MayBeSilentOrLongerThanThePiece) {
  const auto scheme = data::make_token_scheme("groove");
  std::vector<Continuation> all(2, {song(0), 100, {}});
  const QuarterFigure none = judge_continuations(*scheme, all).written.time_pitch[0];
  EXPECT_TRUE(std::isnan(none.mean));
  EXPECT_EQ(none.counted, 0);
  // Silence is left out of the mean; it is no likeness of 0.
  all[0] = continued(0, song(0), 800);
  const auto figures = judge_continuations(*scheme, all);
  EXPECT_EQ(figures.written.time_pitch[0].counted, 1);
  EXPECT_EQ(figures.written.time_pitch[0].mean, figures.truth.time_pitch[0].mean);
  all[0].written.assign(20000, 0);
  judge_continuations(*scheme, all);
  all.pop_back();
  EXPECT_THROW(judge_continuations(*scheme, all), std::invalid_argument);
}

TEST(Continuations, AreWrittenFromTheBeginningsOfPieces) {
  const auto task = make_task({"music:styles=2,songs=30", "", 32, 0});
  ModelConfig config{.layers = 1, .dim = 16, .heads = 2};
  task->shape(config);
  const auto model = make_model(config);
  const ContinuationPlan plan{.count = 5, .prompt = 20, .length = 40};
  const auto all = write_continuations(*model, *task, {}, plan);
  ASSERT_EQ(all.size(), 5u);
  const int32_t end = task->music()->end();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<int64_t> piece = task->encode("test:" + std::to_string(i % 3));
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), all[i].piece.begin()));
    EXPECT_EQ(all[i].piece.back(), end);
    EXPECT_EQ(all[i].written.size(), 40u);
    // Every token is legal, and none ends the piece.
    const auto grammar = task->grammar();
    std::vector<int32_t> ids(all[i].piece.begin(), all[i].piece.begin() + 20);
    ids.insert(ids.end(), all[i].written.begin(), all[i].written.end());
    for (const int32_t id : ids) {
      ASSERT_TRUE(grammar->legal(id)) << id;
      ASSERT_NE(id, end);
      grammar->advance(id);
    }
  }
  EXPECT_NE(all[0].written, all[3].written);  // another sample of the same piece
  EXPECT_EQ(write_continuations(*model, *task, {}, plan)[4].written, all[4].written);
}

TEST(Continuations, AreRefusedWithoutPiecesLongEnough) {
  const auto task = make_task({"music:styles=2,songs=30", "", 32, 0});
  ModelConfig config{.layers = 1, .dim = 16, .heads = 2};
  task->shape(config);
  const auto model = make_model(config);
  EXPECT_THROW(write_continuations(*model, *task, {}, {.prompt = 1 << 20}),
               std::invalid_argument);
  EXPECT_THROW(write_continuations(*model, *task, {}, {.count = 1}),
               std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
