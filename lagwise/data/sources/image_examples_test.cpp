#include "lagwise/data/sources/image_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_images.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

struct Seen {
  std::map<std::string, std::vector<Example>> splits;
  ImageShape shape;
};

Seen read(const ImageReading& reading) {
  Seen seen;
  seen.shape = read_image_examples(
      reading, [&](const std::string& split, const Example& example, double) {
        seen.splits[split].push_back(example);
      });
  return seen;
}

struct ImageExamples : ::testing::Test {
  const TempFolder folder;
  std::string cifar() const {
    put_cifar(folder / "cifar");
    return folder / "cifar";
  }
  std::string mnist(bool packed = true) const {
    put_digits(folder / "mnist", "train", 10, packed);
    put_digits(folder / "mnist", "t10k", 3, packed);
    return folder / "mnist";
  }
};

TEST_F(ImageExamples, ValidateOnTheLastTenthOfCifar) {
  const Seen seen = read({.path = cifar()});
  EXPECT_EQ(seen.shape.side, 32);
  EXPECT_EQ(seen.shape.per_row, 1);
  ASSERT_EQ(seen.splits.at("train").size(), 18u);
  ASSERT_EQ(seen.splits.at("valid").size(), 2u);
  ASSERT_EQ(seen.splits.at("test").size(), 5u);
  EXPECT_EQ(seen.splits.at("valid")[0].label, 8);
  EXPECT_EQ(seen.splits.at("train")[0].first.size(), 1024u);
}

TEST_F(ImageExamples, SetPixelsOfAPatchBesideEachOther) {
  const Seen seen = read({.path = mnist(), .patch = 2});
  EXPECT_EQ(seen.shape.side, 2);
  EXPECT_EQ(seen.shape.per_row, 4);
  EXPECT_THAT(seen.splits.at("train")[1].first,
              ElementsAre(1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16));
}

TEST_F(ImageExamples, SetChannelsOfAPixelBesideEachOther) {
  const Seen seen = read({.path = cifar(), .colour = true});
  EXPECT_EQ(seen.shape.per_row, 3);
  const auto& ids = seen.splits.at("train")[0].first;
  EXPECT_THAT(std::vector(ids.begin(), ids.begin() + 6), ElementsAre(0, 2, 3, 1, 2, 3));
}

TEST_F(ImageExamples, ReadDigitsPackedOrPlain) {
  const Seen packed = read({.path = mnist(true)});
  std::filesystem::remove_all(folder / "mnist");
  const Seen plain = read({.path = mnist(false)});
  ASSERT_EQ(packed.splits.at("train").size(), 9u);
  ASSERT_EQ(packed.splits.at("valid").size(), 1u);
  ASSERT_EQ(packed.splits.at("test").size(), 3u);
  EXPECT_EQ(packed.splits.at("valid")[0].first, plain.splits.at("valid")[0].first);
  EXPECT_EQ(packed.splits.at("valid")[0].label, 9);
}

TEST_F(ImageExamples, RefuseAPatchThatDoesNotFit) {
  for (const int64_t patch : {3, 0, -1})
    EXPECT_THROW(read({.path = mnist(), .patch = patch}), std::invalid_argument);
  EXPECT_THROW(read({.path = mnist(), .colour = true}), std::invalid_argument);
}

TEST_F(ImageExamples, NameWhatIsWrongWithTheFiles) {
  EXPECT_THAT(data_error([&] { read({.path = folder / "none"}); }),
              HasSubstr("none: expected a folder with data_batch_1.bin (CIFAR-10)"));
  const std::string images = cifar();
  put(images + "/data_batch_1.bin", cifar_records(0, 2).substr(0, 4000));
  EXPECT_THAT(data_error([&] { read({.path = images}); }),
              HasSubstr("data_batch_1.bin, byte "));
  std::filesystem::remove(images + "/test_batch.bin");
  put(images + "/data_batch_1.bin", cifar_records(0, 2));
  EXPECT_THAT(data_error([&] { read({.path = images}); }), HasSubstr("test_batch.bin"));
  const std::string digits = mnist(false);
  put(digits + "/train-labels-idx1-ubyte",
      std::string("\0\0\x8\1", 4) + big_endian(1) + "\1");
  EXPECT_THAT(data_error([&] { read({.path = digits}); }),
              HasSubstr("train-labels-idx1-ubyte: expected 10 labels"));
  put(digits + "/train-labels-idx1-ubyte",
      std::string("\0\0\x8\1", 4) + big_endian(10) + std::string(10, '\xa'));
  EXPECT_THAT(data_error([&] { read({.path = digits}); }),
              HasSubstr("expected labels from 0 to 9"));
}

}  // namespace
}  // namespace lagwise::data
