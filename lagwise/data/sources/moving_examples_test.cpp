#include "lagwise/data/sources/moving_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/testing_images.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

using Clips = std::map<std::string, std::vector<Example>>;

Clips made(const MovingMaking& making) {
  Clips clips;
  make_moving_examples(making, [&](const std::string& split, const Example& example,
                                   double) { clips[split].push_back(example); });
  return clips;
}

TEST(MovingExamples, KeepValidAndTestWhenTrainGrows) {
  const Clips few = made({.train = 1, .valid = 2, .test = 3, .seed = 5});
  const Clips many = made({.train = 4, .valid = 2, .test = 3, .seed = 5});
  EXPECT_EQ(many.at("train").size(), 4u);
  for (const char* split : {"valid", "test"}) {
    ASSERT_EQ(few.at(split).size(), many.at(split).size());
    for (size_t i = 0; i < few.at(split).size(); ++i)
      EXPECT_EQ(few.at(split)[i].first, many.at(split)[i].first);
  }
}

TEST(MovingExamples, AreCellsOfTimeRowsAndColumns) {
  const Clips clips = made({.train = 1, .seed = 2, .patch = 7, .rules = {.frames = 3}});
  const Example& example = clips.at("train")[0];
  const MovingClip clip = Moving(2, {.frames = 3}).clip(0);
  EXPECT_EQ(example.label, clip.label);
  ASSERT_EQ(example.first.size(), clip.pixels.size());
  size_t at = 0;
  for (size_t t = 0; t < 3; ++t)
    for (size_t row = 0; row < 4; ++row)
      for (size_t column = 0; column < 4; ++column)
        for (size_t y = 0; y < 7; ++y)
          for (size_t x = 0; x < 7; ++x)
            ASSERT_EQ(example.first[at++],
                      clip.pixels[(t * 28 + row * 7 + y) * 28 + column * 7 + x]);
}

struct MovingPictures : ::testing::Test {
  const TempFolder folder;
  std::string mnist = folder / "mnist";

  MovingPictures() {
    put_digits(mnist, "train", 30, true);
    put_digits(mnist, "t10k", 3, true);
  }
};

// Pixel j of picture i is i + j, j from 0 to 15: the brightest of picture i is i + 15,
// which no other of the same file has. The background may be brighter.
TEST_F(MovingPictures, AreOfTheirSplit) {
  const Clips clips = made({.train = 40, .valid = 3, .test = 12, .path = mnist});
  const auto has = [](const Example& clip, int pixel) {
    // One pixel of a picture of 4 x 4 is 9 or more of the shape in each of 8 frames, but
    // for the few that lie under a speckle; of speckles as bright there is one or so.
    return std::ranges::count(clip.first, pixel) >= ptrdiff_t{8} * 7;
  };
  std::set<int> train, test;
  for (const Example& clip : clips.at("train"))
    for (int i = 0; i < 30; ++i)
      if (has(clip, i + 15) && !has(clip, i + 16)) train.insert(i);
  for (const Example& clip : clips.at("test"))
    for (int i = 0; i < 30; ++i)
      if (has(clip, i + 15) && !has(clip, i + 16)) test.insert(i);
  EXPECT_GT(train.size(), 12u);
  EXPECT_LT(*train.rbegin(), 27);  // the last tenth is valid
  EXPECT_THAT(test, ::testing::IsSubsetOf({0, 1, 2}));
  EXPECT_GE(test.size(), 2u);
}

TEST_F(MovingPictures, AreRefusedByName) {
  try {
    made({.train = 1, .path = folder / "nowhere"});
    FAIL() << "expected a DataError";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nowhere: expected a folder with"));
  }
  EXPECT_THROW(made({.train = 1, .patch = 5}), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::data
