#include "lagwise/data/sets/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

struct Shards : ::testing::Test {
  const TempFolder scratch;
  const std::string folder = scratch / "set";
  const ShardManifest manifest{
      "made here", "letters", 3, {"a", "b", "c\""}, {{"seed", "1"}}};

  void write(std::vector<int32_t> train = {0, 1, 2}) {
    ShardSetWriter writer(folder, manifest);
    writer.add("train", train);
    writer.add("train", std::vector<int32_t>{2});
    writer.add("valid", std::vector<int32_t>{1});
    writer.commit();
  }
  std::string complaint() {
    return data_error([&] { ShardSet{folder}; });
  }
};

TEST_F(Shards, ComeBack) {
  write();
  const ShardSet set(folder);
  EXPECT_THAT(set.splits(), ElementsAre("train", "valid"));
  EXPECT_EQ(set.split("train").tokens(), 4);
  EXPECT_EQ(set.manifest().scheme, "letters");
  EXPECT_EQ(set.manifest().words, manifest.words);
  EXPECT_EQ(set.manifest().info, manifest.info);
  try {
    set.split("test");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("it has train, valid"));
  }
}

TEST_F(Shards, OfOneSplitMayBeMany) {
  constexpr uint64_t kFew = 20;  // bytes: a header, and one or two sequences
  {
    ShardSetWriter writer(folder, manifest, kFew);
    for (const int32_t first : {0, 1, 2, 0, 1})
      writer.add("train", std::vector<int32_t>{first, 1, 2});
    writer.add("valid", std::vector<int32_t>{1});
    writer.commit();
  }
  const ShardSet set(folder);
  const Shard& train = set.split("train");
  EXPECT_THAT(train.ends(), ElementsAre(3, 6, 9, 12, 15));
  EXPECT_THAT(set.split("valid").ends(), ElementsAre(1));
  EXPECT_EQ(train.sequences(), 5);
  EXPECT_EQ(train.tokens(), 15);
  std::vector<int64_t> across(7);
  train.read(2, across);
  EXPECT_THAT(across, ElementsAre(2, 1, 1, 2, 2, 1, 2));
  std::vector<int64_t> one(2);
  train.read(4, 0, one);
  EXPECT_THAT(one, ElementsAre(1, 1));
  EXPECT_EQ(train.length(3), 3);
  EXPECT_THROW(train.length(5), std::out_of_range);
  train.will_read(0, 15);  // changes nothing
  EXPECT_EQ(ShardSet(folder).hash(), set.hash());

  // Damage is found in any of them, unless they are too large to be read for that.
  std::string bytes = contents(folder + "/train.3.bin");
  bytes[16] ^= 1;
  std::ofstream(folder + "/train.3.bin") << bytes;
  EXPECT_THAT(complaint(), HasSubstr("train.3.bin: expected the hash"));
  EXPECT_NO_THROW(ShardSet(folder, 10));
}

TEST_F(Shards, AreKnownByTheirHash) {
  write();
  const uint64_t first = ShardSet(folder).hash();
  write();
  EXPECT_EQ(ShardSet(folder).hash(), first);
  write({0, 1, 1});
  EXPECT_NE(ShardSet(folder).hash(), first);
}

TEST_F(Shards, AreNoneWithoutCommit) {
  write();
  {
    ShardSetWriter writer(folder, manifest);
    writer.add("train", std::vector<int32_t>{1});
  }
  EXPECT_THAT(complaint(), HasSubstr("manifest.json: expected a readable file"));
}

TEST_F(Shards, ShowDamage) {
  write();
  std::string bytes = contents(folder + "/train.bin");
  bytes[16] = 1;
  put(folder + "/train.bin", bytes);
  EXPECT_THAT(complaint(), HasSubstr("train.bin: expected the hash"));
  std::filesystem::copy_file(folder + "/valid.bin", folder + "/train.bin",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(complaint(), HasSubstr("train.bin: expected the sizes in the manifest"));
  std::filesystem::remove(folder + "/train.bin");
  EXPECT_THAT(complaint(), HasSubstr("train.bin: expected a readable file"));
}

TEST_F(Shards, RefuseAManifestThatDoesNotHold) {
  write();
  const std::string good = contents(folder + "/manifest.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return data_error([&] { check_shard_manifest("m", bytes_of(text)); });
  };
  EXPECT_EQ(with("made here", "there"), "(no error)");
  EXPECT_THAT(with("lagwise shards", "other"), HasSubstr("format 'lagwise shards'"));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 3"), HasSubstr("version 1"));
  EXPECT_THAT(with("\"vocabulary\": 3", "\"vocabulary\": 0"),
              HasSubstr("a vocabulary of"));
  EXPECT_THAT(with("\"vocabulary\": 3", "\"vocabulary\": 4"),
              HasSubstr("as many words"));
  EXPECT_THAT(with("\"b\"", "\"a\""), HasSubstr("each word once"));
  EXPECT_THAT(with("\"train\"", "\"../train\""),
              HasSubstr("splits named with letters"));
  EXPECT_THAT(with("\"tokens\"", "\"token\""), HasSubstr("a key 'tokens'"));
  EXPECT_THAT(with("\"scheme\"", "\"source\""), HasSubstr("each key once"));
}

TEST_F(Shards, RefuseNamesThatArePaths) {
  ShardSetWriter writer(folder, manifest);
  EXPECT_THROW(writer.add("../x", {}), std::invalid_argument);
  EXPECT_THROW(writer.add("", {}), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::data
