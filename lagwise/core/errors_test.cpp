#include "lagwise/core/errors.h"

#include <gtest/gtest.h>

namespace lagwise {
namespace {

TEST(DataError, NamesTheFileTheOffsetAndWhatWasExpected) {
  const DataError error("train.npy", 6, "version 1 or 2, got 9");
  EXPECT_STREQ(error.what(), "train.npy, byte 6: expected version 1 or 2, got 9");
  EXPECT_EQ(error.file(), "train.npy");
  EXPECT_EQ(error.offset(), 6);
}

TEST(DataError, LeavesTheOffsetOutWhereNoneApplies) {
  EXPECT_STREQ(DataError("labels.tsv", -1, "two columns").what(),
               "labels.tsv: expected two columns");
}

}  // namespace
}  // namespace lagwise
