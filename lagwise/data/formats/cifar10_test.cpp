#include "lagwise/data/formats/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

std::string record(char label, uint8_t red, uint8_t green, uint8_t blue) {
  std::string bytes(1, label);
  for (const uint8_t colour : {red, green, blue})
    bytes += std::string(Cifar10::kPlane, static_cast<char>(colour));
  return bytes;
}

TEST(Cifar10, ReadsRecords) {
  const TempFolder folder;
  put(folder / "batch.bin", record(3, 1, 2, 3) + record(9, 255, 255, 255));
  const Cifar10 batch(folder / "batch.bin");
  EXPECT_EQ(batch.size(), 2);
  EXPECT_EQ(batch.label(1), 9);
  EXPECT_EQ(batch.image(0)[1024], 2);
  EXPECT_EQ(batch.image(0).size(), 3072u);
}

TEST(Cifar10, TurnsGrey) {
  const std::string file =
      record(0, 255, 255, 255) + record(0, 200, 100, 50) + record(0, 0, 0, 0);
  const Cifar10 batch("x", bytes_of(file));
  EXPECT_EQ(batch.grey(0)[7], 255);
  EXPECT_EQ(batch.grey(1)[1023], 124);  // 59.78 + 58.7 + 5.7 = 124.18
  EXPECT_EQ(batch.grey(2)[0], 0);
}

TEST(Cifar10, RefusesDamage) {
  const std::string good = record(3, 1, 2, 3);
  const auto complaint = [](const std::string& file) {
    return data_error([&] { Cifar10("x.bin", bytes_of(file)); });
  };
  EXPECT_THAT(complaint(""), HasSubstr("byte 0"));
  EXPECT_THAT(complaint(good + "abc"),
              HasSubstr("byte 3073: expected records of 3073 bytes, got 3"));
  EXPECT_THAT(complaint(good + record(10, 0, 0, 0)),
              HasSubstr("byte 3073: expected a label from 0 to 9, got 10"));
}

}  // namespace
}  // namespace lagwise::data
