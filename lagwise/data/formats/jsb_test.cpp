#include "lagwise/data/formats/jsb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

auto parse(const std::string& text) { return parse_jsb("jsb.json", bytes_of(text)); }
std::string complaint(const std::string& text) {
  return data_error([&] { parse(text); });
}

TEST(Jsb, ReadsVoices) {
  const auto splits = parse(
      R"({"train": [[[74, 70, 65, -1], [74, 71, 65, 58]]], "test": [[[1,2,3,4]]]})");
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_THAT(splits.at("train")[0][0], ElementsAre(74, 70, 65, -1));
  const Music music = chorale_music(splits.at("train")[0]);
  EXPECT_THAT(music.tracks[0].notes, ElementsAre(Note{0, 2, 74, 80}));
  EXPECT_THAT(music.tracks[3].notes, ElementsAre(Note{1, 2, 58, 80}));
}

TEST(Jsb, SaysWhereTheMistakeIs) {
  EXPECT_THAT(complaint("[]"), HasSubstr("an object with train"));
  EXPECT_THAT(complaint("{\"train\": []}"), HasSubstr("a list of chorales at train"));
  EXPECT_THAT(complaint("{\"train\": [[]]}"), HasSubstr("a list of steps at train[0]"));
  EXPECT_THAT(complaint("{\"train\": [[[1,2,3]]]}"),
              HasSubstr("four voices at train[0][0]"));
  EXPECT_THAT(complaint("{\"train\": [[[1,2,3,128]]]}"),
              HasSubstr("pitches from 0 to 127"));
  EXPECT_THAT(complaint("{\"train\": [[[1,2,3,\"4\"]]]}"), HasSubstr("whole numbers"));
  EXPECT_THAT(complaint("{\"train\": [[[1,2,3,18446744073709551615]]]}"),
              HasSubstr("pitches from 0"));
  EXPECT_THAT(complaint("{\"train\": [[[1,2,3,4.5]]]}"), HasSubstr("byte 2"));
  EXPECT_THAT(complaint("{\"dev\": []}"), HasSubstr("got 'dev'"));
}

TEST(Jsb, ReadsTheRealOne) {
  const TempFolder scratch;
  const std::string folder = real_data("jsb", scratch);
  LAGWISE_NEEDS_DATA(folder, "jsb");
  const auto splits = read_jsb(folder + "/Jsb16thSeparated.json");
  EXPECT_EQ(splits.at("train").size(), 229u);
  EXPECT_EQ(splits.at("valid").size(), 76u);
}

}  // namespace
}  // namespace lagwise::data
