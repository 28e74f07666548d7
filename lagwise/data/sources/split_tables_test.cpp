#include "lagwise/data/sources/split_tables.h"

#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;

TEST(SplitTables, AreFoundByTheNamesOfSplits) {
  const TempFolder folder;
  put(folder / "train.jsonl", "");
  put(folder / "dev.csv.gz", "");
  put(folder / "test.txt", "");
  const SplitTables found = find_split_tables(folder.path().string());
  EXPECT_EQ(found.train, folder / "train.jsonl");
  EXPECT_EQ(found.valid, folder / "dev.csv.gz");
  EXPECT_EQ(found.test, "");
  EXPECT_EQ(find_split_tables(folder / "none").train, "");
}

}  // namespace
}  // namespace lagwise::data
