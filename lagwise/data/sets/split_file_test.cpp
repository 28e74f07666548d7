#include "lagwise/data/sets/split_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;

TEST(SplitFile, IsFoundByTheNamesOfItsSplit) {
  const TempFolder folder;
  const std::string path = folder.path().string();
  put(folder / "train.jsonl", "");
  put(folder / "validation.csv", "");
  put(folder / "test/a.txt", "");
  EXPECT_EQ(find_split_file(path, "train", {".csv", ".jsonl"}), folder / "train.jsonl");
  EXPECT_EQ(find_split_file(path, "valid", {".csv"}), folder / "validation.csv");
  EXPECT_EQ(find_split_file(path, "test", {".csv"}), "");
  EXPECT_EQ(find_split_file(path, "test", {""}), folder / "test");
  EXPECT_EQ(find_split_file(folder / "none", "train", {".csv"}), "");
}

TEST(SplitFile, IsOne) {
  const TempFolder folder;
  put(folder / "dev.csv", "");
  put(folder / "val.tsv", "");
  EXPECT_THAT(data_error([&] {
                find_split_file(folder.path().string(), "valid", {".csv", ".tsv"});
              }),
              ::testing::HasSubstr("expected one file for the split valid, got " +
                                   folder / "val.tsv" + " and " + folder / "dev.csv"));
}

}  // namespace
}  // namespace lagwise::data
