#include "lagwise/data/music/chorale_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

using Tokens = std::vector<int64_t>;

TEST(ChoraleTokens, HaveAWordEach) {
  const auto words = chorale_words();
  ASSERT_EQ(words.size(), static_cast<size_t>(kChoraleWords));
  EXPECT_EQ(words[kChoralePitch + 60], "C4");
  EXPECT_EQ(words[kChoralePitch + 70], "A#4");
  EXPECT_EQ(words[kChoralePlace + 3], "place_3");
}

TEST(ChoraleTokens, SetTheSopranoApartFromTheOthers) {
  const TempFolder folder;
  put(folder / "Jsb16thSeparated.json",
      R"({"train": [[[74, 70, 65, 58], [74, 70, -1, 58]]], "valid": [[[60, 55, 52, 48]]]})");
  std::string said;
  const auto note = [&](const std::string& split, const Example& example, double) {
    said += split + " ";
    for (const int32_t id : example.first) said += std::to_string(id) + " ";
    said += "| ";
    for (const int32_t id : example.second) said += std::to_string(id) + " ";
  };
  read_chorale_examples(folder.path(), note);
  EXPECT_EQ(said, "train 94 94 | 90 85 78 90 1 78 valid 80 | 75 72 68 ");
  const std::string by_folder = said;
  said.clear();
  read_chorale_examples(folder / "Jsb16thSeparated.json", note);
  EXPECT_EQ(said, by_folder);
}

TEST(ChoraleTokens, NameWhatIsWrongWithTheFile) {
  const TempFolder folder;
  const auto read = [&](const std::string& path) {
    read_chorale_examples(path, [](const std::string&, const Example&, double) {});
  };
  EXPECT_THAT(data_error([&] { read(folder.path()); }),
              HasSubstr("Jsb16thSeparated.json"));
  put(folder / "x.json", R"({"train": [[[74, 70, 65]]]})");
  EXPECT_THAT(data_error([&] { read(folder / "x.json"); }), HasSubstr("x.json"));
}

TEST(ChoraleTokens, SayPitchAndWhetherItIsHeldAndThePlaceInTheBar) {
  const Tokens soprano(20, kChoralePitch + 60);
  EXPECT_THAT(heard_soprano(soprano, 0, 2),
              ElementsAre(80, kChoraleNew, 4, 80, kChoraleHeld, 5));
  EXPECT_THAT(heard_soprano(soprano, 17, 1), ElementsAre(80, kChoraleHeld, 5));
  EXPECT_THAT(heard_soprano(soprano, 0, 1, -2), ElementsAre(78, kChoraleNew, 4));
  EXPECT_THAT(heard_soprano(Tokens{kChoraleRest}, 0, 1, 5),
              ElementsAre(kChoraleRest, kChoraleNew, 4));
}

TEST(ChoraleTokens, AreReadFromNames) {
  EXPECT_THAT(soprano_of_text("C4:2 Bb3:1 -:1 F#5"),
              ElementsAre(80, 80, 78, kChoraleRest, 98, 98, 98, 98));
  for (const char* text : {"", "H4", "C", "C4:", "C4:0", "C4:x", "C99", " ", "#4"}) {
    SCOPED_TRACE(text);
    EXPECT_THROW(soprano_of_text(text), std::invalid_argument);
  }
}

TEST(ChoraleTokens, AreWrittenAsChords) {
  EXPECT_EQ(chords_text(Tokens{80, 76, 1, 80, 76, 1, 79, 76, 72, 5}),
            "C4 G#3 - :2\nB3 G#3 E3 :1\n");
  EXPECT_EQ(chords_text(Tokens{}), "");
}

}  // namespace
}  // namespace lagwise::data
