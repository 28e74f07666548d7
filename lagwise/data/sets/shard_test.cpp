#include "lagwise/data/sets/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

struct ShardTest : ::testing::Test {
  const TempFolder folder;
  const std::string file = folder / "train.bin";

  std::string written(int64_t vocabulary) {
    ShardWriter writer(file, vocabulary);
    for (const std::vector<int32_t>& ids : {std::vector<int32_t>{1, 2, 3}, {}, {9, 8}})
      writer.add(ids);
    writer.commit();
    EXPECT_EQ(writer.sequences(), 3);
    EXPECT_EQ(writer.tokens(), 5);
    EXPECT_EQ(writer.bytes(), std::filesystem::file_size(file));
    EXPECT_EQ(writer.hash(), Shard(file, vocabulary).hash());
    return contents(file);
  }
};

TEST_F(ShardTest, ComesBack) {
  for (const int64_t vocabulary : {10, 65536, 65537}) {
    written(vocabulary);
    const Shard shard(file, vocabulary);
    EXPECT_EQ(shard.sequences(), 3);
    EXPECT_EQ(shard.tokens(), 5);
    EXPECT_EQ(shard.length(0), 3);
    EXPECT_EQ(shard.length(1), 0);
    std::vector<int64_t> two(2), all(5);
    shard.read(2, 0, two);
    EXPECT_THAT(two, ElementsAre(9, 8));
    shard.read(0, 1, two);
    EXPECT_THAT(two, ElementsAre(2, 3));
    shard.read(0, all);
    EXPECT_THAT(all, ElementsAre(1, 2, 3, 9, 8));
    EXPECT_THROW(shard.read(0, 2, two), std::out_of_range);
    EXPECT_THROW(shard.read(0, -1, two), std::out_of_range);
    EXPECT_THROW(shard.read(4, two), std::out_of_range);
    EXPECT_THROW(shard.length(3), std::out_of_range);
  }
}

TEST_F(ShardTest, MayBeEmpty) {
  ShardWriter writer(file, 10);
  writer.commit();
  EXPECT_EQ(Shard(file, 10).tokens(), 0);
}

TEST_F(ShardTest, LeavesNothingWithoutCommit) {
  {
    ShardWriter writer(file, 10);
    writer.add(std::vector<int32_t>{1});
    EXPECT_THROW(writer.add(std::vector<int32_t>{10}), std::invalid_argument);
    EXPECT_THROW(writer.add(std::vector<int32_t>{-1}), std::invalid_argument);
  }
  EXPECT_EQ(folder.files(), 0);
}

TEST_F(ShardTest, RefusesDamage) {
  const std::string good = written(10);
  const auto complaint = [](const std::string& bytes, int64_t vocabulary = 10) {
    return data_error([&] { Shard("x.bin", bytes_of(bytes), vocabulary); });
  };
  const auto changed = [&](size_t at, char to) {
    std::string bytes = good;
    bytes[at] = to;
    return bytes;
  };
  ASSERT_EQ(good.size(), 16u + 16 + 4 * 8 + 8);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(complaint(good.substr(0, length)), "(no error)") << length;
  EXPECT_THAT(complaint(changed(0, 'x')), HasSubstr("byte 0: expected LWSHARD1"));
  EXPECT_THAT(complaint(good, 70000), HasSubstr("byte 8: expected tokens of 4 bytes"));
  EXPECT_THAT(complaint(changed(12, 1)), HasSubstr("byte 12: expected zero"));
  EXPECT_THAT(complaint(changed(32, 1)),
              HasSubstr("byte 32: expected starts that rise"));
  EXPECT_THAT(complaint(changed(48, 1)),
              HasSubstr("byte 48: expected starts that rise"));
  EXPECT_THAT(complaint(changed(63, 1)),
              HasSubstr("byte 56: expected starts that rise"));
  EXPECT_THAT(complaint(changed(71, 1)),
              HasSubstr("byte 64: expected a number of sequences"));
  const std::string wrong_token = changed(18, 10);
  const Shard shard("x.bin", bytes_of(wrong_token), 10);
  std::vector<int64_t> all(5);
  EXPECT_THAT(data_error([&] { shard.read(0, all); }),
              HasSubstr("byte 18: expected a token below 10, got 10"));
}

}  // namespace
}  // namespace lagwise::data
