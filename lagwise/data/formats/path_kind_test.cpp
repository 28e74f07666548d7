#include "lagwise/data/formats/path_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;
namespace fs = std::filesystem;

TEST(PathKind, IsThatOfFilesAndFolders) {
  const TempFolder folder;
  put(folder / "a/b", "");
  EXPECT_TRUE(is_there(folder / "a") && is_folder(folder / "a"));
  EXPECT_TRUE(is_there(folder / "a/b") && !is_folder(folder / "a/b"));
  EXPECT_FALSE(is_there(folder / "c") || is_folder(folder / "c"));
  EXPECT_FALSE(is_there(folder / "a/b/c") || is_folder(folder / "a/b/c"));
}

TEST(PathKind, IsNotKnownOfLinksInACircle) {
  const TempFolder folder;
  fs::create_symlink("nowhere", folder / "lost");
  fs::create_symlink("circle", folder / "circle");
  EXPECT_TRUE(is_there(folder / "lost") && !is_folder(folder / "lost"));
  EXPECT_TRUE(is_there(folder / "circle"));
  EXPECT_THAT(data_error([&] { is_folder(folder / "circle"); }),
              ::testing::HasSubstr("circle: expected a readable file: "));
  EXPECT_THAT(data_error([&] { is_there(folder / "circle/a"); }),
              ::testing::HasSubstr("circle/a: expected a readable file: "));
}

}  // namespace
}  // namespace lagwise::data
