#include "lagwise/data/sources/pathfinder_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

using Seen = std::map<std::string, std::vector<Example>>;

VisitExample into(Seen& seen) {
  return [&](const std::string& split, const Example& example, double) {
    seen[split].push_back(example);
  };
}

TEST(PathfinderExamples, KeepValidAndTestWhenTrainGrows) {
  Seen few, many;
  make_pathfinder_examples({1, 2, 2, 3, 1, {}}, into(few));
  make_pathfinder_examples({4, 2, 2, 3, 1, {}}, into(many));
  EXPECT_EQ(many["train"].size(), 4u);
  for (const char* split : {"valid", "test"})
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(few[split][i].first, many[split][i].first);
      EXPECT_EQ(few[split][i].label, many[split][i].label);
    }
  EXPECT_EQ(many["train"][0].first.size(), 1024u);
}

TEST(PathfinderExamples, CanBeReadInSquares) {
  Seen pixels, squares;
  make_pathfinder_examples({1, 0, 1, 3, 1, {}}, into(pixels));
  make_pathfinder_examples({1, 0, 1, 3, 4, {}}, into(squares));
  const std::vector<int32_t>& image = pixels["test"][0].first;
  std::vector<int32_t> wanted;
  for (size_t top = 0; top < 32; top += 4)
    for (size_t left = 0; left < 32; left += 4)
      for (size_t i = 0; i < 16; ++i)
        wanted.push_back(image[(top + i / 4) * 32 + left + i % 4]);
  EXPECT_EQ(squares["test"][0].first, wanted);
  EXPECT_EQ(squares["test"][0].label, pixels["test"][0].label);
  for (const int64_t patch : {0, 5})
    EXPECT_THROW(make_pathfinder_examples({1, 0, 1, 3, patch, {}}, into(pixels)),
                 std::invalid_argument);
}

struct PathfinderFolder : ::testing::Test {
  const TempFolder folder;

  void put_images(int batch, int many) {
    std::string lines;
    const std::string sub = "imgs/" + std::to_string(batch);
    for (int i = 0; i < many; ++i) {
      const std::string name = "sample_" + std::to_string(i) + ".png";
      const auto shade = static_cast<uint8_t>(10 * batch + i);
      put(folder / (sub + "/" + name),
          grey_png({4, 4, std::vector<uint8_t>(16, shade)}));
      lines += sub + " " + name + " " + std::to_string(i) + " " +
               std::to_string(i % 2) + " 1.0 14 4 2 0.5 1 1\n";
    }
    put(folder / ("metadata/" + std::to_string(batch) + ".npy"), lines);
  }
  Seen read() {
    Seen seen;
    EXPECT_EQ(read_pathfinder_examples(folder.path(), 1, into(seen)), 4);
    return seen;
  }
};

TEST_F(PathfinderFolder, IsReadInTheOrderOfItsNumbers) {
  put_images(10, 4);
  put_images(2, 6);
  const Seen seen = read();
  EXPECT_EQ(seen.at("train").size(), 8u);
  EXPECT_EQ(seen.at("valid").size(), 1u);
  EXPECT_EQ(seen.at("test").size(), 1u);
  EXPECT_EQ(seen.at("train")[0].first[0], 20);
  EXPECT_EQ(seen.at("train")[1].label, 1);
  EXPECT_EQ(seen.at("test")[0].first[0], 103);
}

TEST_F(PathfinderFolder, NamesWhatIsWrong) {
  const auto error = [&] {
    return data_error([&] {
      Seen seen;
      read_pathfinder_examples(folder.path(), 1, into(seen));
    });
  };
  EXPECT_THAT(error(), HasSubstr("expected metadata/<number>.npy in the folder"));
  put_images(1, 3);
  put(folder / "imgs/1/sample_1.png", "no image");
  EXPECT_THAT(error(), HasSubstr("sample_1.png: expected a PNG image"));
  put(folder / "imgs/1/sample_1.png", grey_png({4, 3, std::vector<uint8_t>(12)}));
  EXPECT_THAT(error(), HasSubstr("expected an image of 4 x 4 pixels, got 3 x 4"));
  std::filesystem::remove(folder / "imgs/1/sample_1.png");
  EXPECT_THAT(error(), HasSubstr("sample_1.png"));
  put(folder / "metadata/1.npy", "");
  EXPECT_THAT(error(), HasSubstr("metadata: expected images, got none"));
}

TEST_F(PathfinderFolder, RefusesLinesThatAreNone) {
  const auto error = [](const std::string& text) {
    return data_error([&] { parse_pathfinder_metadata("m", bytes_of(text)); });
  };
  EXPECT_EQ(error("imgs/0 a.png 0 1\n"), "(no error)");
  EXPECT_EQ(error("imgs/0 a.png 0 1"), "(no error)");
  for (const char* line : {"imgs/0 a.png 0 2", "imgs/0 a.png 0", "", "\x93NUMPY",
                           "../x a.png 0 1", "/etc passwd 0 1", "imgs/0 ../../a 0 1"})
    EXPECT_THAT(error(std::string("a b 0 1\n") + line + "\n"), HasSubstr("m, byte 8"))
        << line;
  EXPECT_THAT(error(std::string(5000, 'x')), HasSubstr("m, byte 0"));
}

}  // namespace
}  // namespace lagwise::data
