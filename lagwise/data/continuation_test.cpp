#include "lagwise/data/continuation.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/data/grooves.h"

namespace lagwise::data {
namespace {

std::vector<int32_t> song(int64_t index) {
  return make_token_scheme("groove")->encode(Grooves().song(index)).ids;
}

Continuation continued(int64_t index, const std::vector<int32_t>& by, int64_t length) {
  Continuation one{song(index), 100, {}};
  one.written.assign(by.begin() + 100, by.begin() + 100 + length);
  return one;
}

TEST(MusicAfter, KeepsPlacesInTheBar) {
  const auto scheme = make_token_scheme("groove");
  const std::vector<int32_t> ids = song(0);
  const Music whole = scheme->decode(ids), after = music_after(*scheme, ids, 200);
  const int64_t bar = 4 * whole.ticks_per_beat;
  EXPECT_GT(after.end, 0);
  EXPECT_EQ((whole.end - after.end) % bar, 0);
  EXPECT_LT(after.end, whole.end);
  for (size_t t = 0; t < whole.tracks.size(); ++t) {
    const auto &all = whole.tracks[t].notes, &some = after.tracks[t].notes;
    ASSERT_LT(some.size(), all.size());
    for (size_t i = 0; i < some.size(); ++i) {
      const Note& original = all[all.size() - some.size() + i];
      EXPECT_EQ(original.start - some[i].start, whole.end - after.end);
      EXPECT_EQ(original.pitch, some[i].pitch);
    }
  }
  EXPECT_EQ(music_after(*scheme, ids, 0), whole);
}

TEST(Continuations, OfTheSourceItselfAreTheTruth) {
  const auto scheme = make_token_scheme("groove");
  std::vector<Continuation> all;
  for (int64_t i = 0; i < 6; ++i) all.push_back(continued(i, song(i), 800));
  const ContinuationFigures figures = judge_continuations(*scheme, all);
  EXPECT_EQ(figures.count, 6);
  EXPECT_EQ(figures.written.time_pitch.mean, figures.truth.time_pitch.mean);
  EXPECT_EQ(figures.written.onset_duration.error, figures.truth.onset_duration.error);
  EXPECT_EQ(figures.written_notes.mean_pitch, figures.true_notes.mean_pitch);
  for (size_t q = 0; q < 4; ++q) {
    EXPECT_GT(figures.truth.onset_duration.mean[q],
              figures.shuffled.onset_duration.mean[q] + 0.1);
    EXPECT_GT(figures.truth.time_pitch.mean[q], figures.shuffled.time_pitch.mean[q]);
    EXPECT_GT(figures.truth.time_pitch.error[q], 0);
  }
}

TEST(Continuations, InAnotherStyleAreUnlikeTheirSource) {
  const auto scheme = make_token_scheme("groove");
  std::vector<Continuation> right, wrong;
  for (int64_t i = 0; i < 6; ++i) {
    right.push_back(continued(i, song(i), 800));
    wrong.push_back(continued(i, song(i + 3), 800));
  }
  const auto good = judge_continuations(*scheme, right);
  const auto bad = judge_continuations(*scheme, wrong);
  for (size_t q = 0; q < 4; ++q)
    EXPECT_GT(good.written.onset_duration.mean[q],
              bad.written.onset_duration.mean[q] + 0.1);
  EXPECT_EQ(good.truth.time_pitch.mean, bad.truth.time_pitch.mean);
}

TEST(Continuations, MayBeSilentOrLongerThanThePiece) {
  const auto scheme = make_token_scheme("groove");
  std::vector<Continuation> all(2, {song(0), 100, {}});
  EXPECT_EQ(judge_continuations(*scheme, all).written.time_pitch.mean[0], 0);
  all[0].written.assign(20000, 0);
  judge_continuations(*scheme, all);
  all.pop_back();
  EXPECT_THROW(judge_continuations(*scheme, all), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::data
