#include "lagwise/data/new_folder.h"

#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;
namespace fs = std::filesystem;

struct NewFolderTest : ::testing::Test {
  const TempFolder folder;
  const std::string name = folder / "a/set";
};

TEST_F(NewFolderTest, AppearsOnceItIsCommitted) {
  NewFolder made(name + "/");
  put(made.path() + "/x", "1");
  EXPECT_FALSE(fs::exists(name));
  made.commit();
  EXPECT_EQ(contents(name + "/x"), "1");
  EXPECT_FALSE(fs::exists(name + ".tmp"));
}

TEST_F(NewFolderTest, LeavesNothingBehindWithoutCommit) {
  { put(NewFolder(name).path() + "/x", "1"); }
  EXPECT_FALSE(fs::exists(name));
  EXPECT_FALSE(fs::exists(name + ".tmp"));
}

TEST_F(NewFolderTest, ReplacesAnEarlierSetWhole) {
  put(name + "/manifest.json", "{}");
  put(name + "/test.bin", "old");
  { put(NewFolder(name).path() + "/x", "1"); }  // gives up
  EXPECT_EQ(contents(name + "/test.bin"), "old");
  NewFolder made(name);
  put(made.path() + "/x", "1");
  made.commit();
  EXPECT_FALSE(fs::exists(name + "/test.bin"));
  EXPECT_TRUE(fs::exists(name + "/x"));
}

TEST_F(NewFolderTest, StartsAnewWhereAKilledOneStood) {
  put(name + ".tmp/left", "over");
  NewFolder made(name);
  EXPECT_FALSE(fs::exists(made.path() + "/left"));
}

TEST_F(NewFolderTest, NeverReplacesSomethingElse) {
  put(name + "/thesis.tex", "precious");
  EXPECT_THROW(NewFolder{name}, std::invalid_argument);
  EXPECT_THROW(NewFolder{name + "/thesis.tex"}, std::invalid_argument);
  EXPECT_EQ(contents(name + "/thesis.tex"), "precious");
}

TEST_F(NewFolderTest, SaysWhyItCannotBeMade) {
  put(folder / "file", "");
  EXPECT_THROW(NewFolder(folder / "file/set"), std::runtime_error);
}

}  // namespace
}  // namespace lagwise::data
