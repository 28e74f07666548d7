#include "lagwise/data/sources/picture_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_pictures.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace lagwise::testing;

std::string png(int64_t side, uint8_t light, int64_t width = 0) {
  if (width == 0) width = side;
  return grey_png(
      {side, width, std::vector<uint8_t>(static_cast<size_t>(side * width), light)});
}

struct PictureFolders : ::testing::Test {
  const TempFolder folder;

  /// "train:0=7;" for each: its split, label and first number
  std::string read(ImageReading reading) {
    std::string said;
    shape = read_image_examples(
        reading, [&](const std::string& split, const Example& example, double) {
          said += split + ":" + std::to_string(example.label) + "=" +
                  std::to_string(example.first[0]) + ";";
          numbers = example.first.size();
        });
    return said;
  }
  ImageShape shape;
  size_t numbers = 0;
};

TEST_F(PictureFolders, AreClassesByTheirNames) {
  put(folder / "dog/b.png", png(4, 20));
  put(folder / "dog/a.png", png(4, 10));
  put(folder / "cat/c.PNG", png(4, 30));
  put(folder / "cat/notes.txt", "no picture");
  EXPECT_EQ(read({.path = folder.path(), .valid = 0, .test = 0}),
            "train:0=30;train:1=10;train:1=20;");
  EXPECT_EQ(shape.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(shape.side, 4);
  EXPECT_EQ(numbers, 16u);
  read({.path = folder.path(), .patch = 2, .colour = true});
  EXPECT_EQ(shape.side, 2);
  EXPECT_EQ(shape.per_row, 12);
  EXPECT_EQ(numbers, 48u);
}

TEST_F(PictureFolders, HaveSplits) {
  put(folder / "train/a/1.png", png(2, 1));
  put(folder / "train/b/1.png", png(2, 2));
  put(folder / "val/b/1.png", png(2, 3));
  put(folder / "test/a/1.png", png(2, 4));
  EXPECT_EQ(read({.path = folder.path()}), "train:0=1;train:1=2;valid:1=3;test:0=4;");
  put(folder / "test/c/1.png", png(2, 4));
  EXPECT_THAT(data_error([&] { read({.path = folder.path()}); }),
              HasSubstr("test/c: expected a class that train has too"));
}

TEST_F(PictureFolders, SayWhatTheyLeaveOut) {
  for (const char* name : {"a", "b"}) put(folder / name + "/1.png", png(2, 1));
  read({.path = folder.path()});
  EXPECT_THAT(shape.left_out, IsEmpty());
  put(folder / "a/.hidden", "");
  put(folder / "b/2.gif", "GIF89a");
  put(folder / "b/1.txt", "");
  put(folder / "b/more/3.png", png(2, 1));
  EXPECT_EQ(read({.path = folder.path() / "", .valid = 0, .test = 0}),
            "train:0=1;train:1=1;");
  EXPECT_THAT(
      shape.left_out,
      ElementsAre(
          "left out: 2, files that are neither PNG nor JPEG, such as b/1.txt",
          "left out: 1, pictures that do not lie in the folder of a class itself, "
          "such as b/more/3.png"));
}

TEST_F(PictureFolders, LackNoClassAndNoSplit) {
  for (const char* name : {"a", "b"}) put(folder / name + "/1.png", png(2, 1));
  put(folder / "c/1.GIF", "GIF89a");
  EXPECT_THAT(data_error([&] { read({.path = folder.path()}); }),
              HasSubstr("/c: expected pictures as PNG or JPEG, got 1 in other formats, "
                        "such as 1.GIF"));
  for (const char* name : {"train/a", "train/b", "tset/a"})
    put(folder / "s/" + name + "/1.png", png(2, 1));
  EXPECT_THAT(
      data_error([&] { read({.path = folder / "s"}); }),
      HasSubstr("/s/tset: expected a split by the name of train, valid (or val, "
                "validation, dev) or test, got pictures by class in 'tset'"));
  std::filesystem::rename(folder / "s/tset", folder / "s/val");
  put(folder / "s/dev/a/1.png", png(2, 1));
  EXPECT_THAT(data_error([&] { read({.path = folder / "s"}); }),
              HasSubstr("expected one file for the split valid, got "));
}

TEST_F(PictureFolders, AreMadeOneSizeWhereAsked) {
  put(folder / "a/1.png", png(4, 7));
  put(folder / "b/1.jpg", jpeg_bytes({6, 9, std::vector<uint8_t>(162, 90)}, 95));
  EXPECT_THAT(
      data_error([&] { read({.path = folder.path()}); }),
      HasSubstr("b/1.jpg: expected square pictures of one size (size=N, --size N "
                "makes them so), 4 x 4, got 9 x 6"));
  EXPECT_EQ(read({.path = folder.path(), .valid = 0, .test = 0, .size = 3}),
            "train:0=7;train:1=90;");
  EXPECT_EQ(numbers, 9u);
  EXPECT_EQ(picture_numbers("a.png", bytes_of(png(4, 7)), 2, 1, false),
            (std::vector<int32_t>{7, 7, 7, 7}));
  EXPECT_EQ(picture_numbers("a.png", bytes_of(png(2, 7)), 2, 2, true).size(), 12u);
}

TEST_F(PictureFolders, NameWhatIsWrong) {
  put(folder / "a/1.png", png(4, 7));
  EXPECT_THAT(data_error([&] { read({.path = folder.path()}); }),
              HasSubstr("expected pictures in folders for 2 to 1000 classes, got 1"));
  put(folder / "b/2.png", png(4, 7).substr(0, 30));
  EXPECT_THAT(data_error([&] { read({.path = folder.path()}); }),
              HasSubstr("b/2.png: expected a PNG image"));
  put(folder / "b/2.png", "");
  EXPECT_THAT(data_error([&] { read({.path = folder.path()}); }),
              HasSubstr("b/2.png, byte 0: expected a PNG or a JPEG image"));
  std::filesystem::remove(folder / "b/2.png");
  std::filesystem::create_symlink("nowhere", folder / "b/2.png");
  EXPECT_THAT(data_error([&] { read({.path = folder.path()}); }),
              HasSubstr("b/2.png: expected a readable file: No such file"));
  const TempFolder empty;
  EXPECT_THAT(data_error([&] { read({.path = empty.path()}); }),
              HasSubstr("or a folder of .png or .jpg for each class"));
}

}  // namespace
}  // namespace lagwise::data
