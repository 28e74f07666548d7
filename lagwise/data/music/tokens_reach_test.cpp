#include "lagwise/data/music/tokens_reach.h"

#include <gtest/gtest.h>

#include "lagwise/data/music/grooves.h"

namespace lagwise::data {
namespace {

// Of a piece with a note a beat, each a bar long.
TEST(TokensReach, IsNotMovedByNotesThatSoundOn) {
  Music music;
  music.ticks_per_beat = 480;
  music.tracks = {{"piano", 0, 0, {}, {}}};
  for (int64_t beat = 0; beat < 20; ++beat)
    music.tracks[0].notes.push_back(
        {480 * beat, 480 * (beat + 4), 60 + static_cast<int>(beat), 80});
  tidy(music);
  const auto scheme = make_token_scheme("remi");
  const std::vector<int32_t> ids = scheme->encode(music).ids;
  for (const int64_t bars : {1, 2, 3}) {
    const auto some =
        std::span(ids).first(static_cast<size_t>(scheme->first_bars(ids, bars)));
    EXPECT_EQ(tokens_reach(*scheme, some), bars * 4 * 480);
    EXPECT_GT(scheme->decode(some).end, bars * 4 * 480);
  }
  EXPECT_EQ(tokens_reach(*scheme, {}), 0);
}

TEST(TokensReach, IsWhereGroovesEnd) {
  const auto scheme = make_token_scheme("groove");
  const std::vector<int32_t> ids = scheme->encode(Grooves().song(1)).ids;
  for (const size_t count : {size_t{40}, size_t{200}, size_t{900}}) {
    const auto some = std::span(ids).first(count);
    EXPECT_EQ(tokens_reach(*scheme, some), scheme->decode(some).end);
  }
}

}  // namespace
}  // namespace lagwise::data
