#include "lagwise/data/sources/split_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;

TEST(SplitTables, AreFoundByTheNamesOfSplits) {
  const TempFolder folder;
  put(folder / "train.jsonl", "");
  put(folder / "dev.csv", "");
  put(folder / "test.txt", "");
  const SplitTables found = find_split_tables(folder.path().string());
  EXPECT_EQ(found.train, folder / "train.jsonl");
  EXPECT_EQ(found.valid, folder / "dev.csv");
  EXPECT_EQ(found.test, "");
  EXPECT_EQ(find_split_tables(folder / "none").train, "");
}

TEST(SplitTables, AreOneForEachSplit) {
  const TempFolder folder;
  put(folder / "dev.csv", "");
  put(folder / "val.tsv", "");
  EXPECT_THAT(data_error([&] { find_split_tables(folder.path().string()); }),
              ::testing::HasSubstr("expected one table for the split valid, got " +
                                   folder / "val.tsv" + " and " + folder / "dev.csv"));
}

}  // namespace
}  // namespace lagwise::data
