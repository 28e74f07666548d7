// All of the new contents or all of the old ones, and nothing left behind.

#include "lagwise/cli/replace_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace lagwise::cli {
namespace {

namespace fs = std::filesystem;

struct ReplaceFile : ::testing::Test {
  const fs::path folder = fs::path(::testing::TempDir()) /
                          ("lagwise_replace_file_" + std::to_string(getpid()));

  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
};

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

auto files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST_F(ReplaceFile, WritesAndOverwrites) {
  const fs::path file = folder / "page.html";
  for (const char* text : {"a long first version", "second"}) {
    replace_file(file, text);
    EXPECT_EQ(contents(file), text);
  }
  EXPECT_EQ(files_in(folder), 1);
}

TEST_F(ReplaceFile, CheckingChangesNothing) {
  const fs::path file = folder / "page.html";
  check_replaceable(file);
  EXPECT_EQ(files_in(folder), 0);
  replace_file(file, "old");
  check_replaceable(file);
  EXPECT_EQ(contents(file), "old");
}

TEST_F(ReplaceFile, KeepsLinksAndPermissions) {
  const fs::path file = folder / "page.html", link = folder / "link.html";
  replace_file(file, "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(file, link);
  replace_file(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(contents(file), "new");
  EXPECT_EQ(fs::status(file).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(files_in(folder), 2);
}

TEST_F(ReplaceFile, GivesTheReason) {
  try {
    replace_file(folder / "no" / "page.html", "text");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with(": No such file or directory"));
  }
  EXPECT_THROW(replace_file(folder, "text"), std::runtime_error);
}

}  // namespace
}  // namespace lagwise::cli
