// All of the new contents or all of the old ones, and nothing left behind.

#include "lagwise/data/formats/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <stdexcept>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using namespace lagwise::testing;

struct AtomicFileTest : ::testing::Test {
  const TempFolder folder;
  const std::string file = folder / "page.html";
};

std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "(no complaint)";
}

TEST_F(AtomicFileTest, WritesAndOverwrites) {
  for (const char* text : {"a long first version", "second", ""}) {
    replace_file(file, text);
    EXPECT_EQ(contents(file), text);
  }
  EXPECT_EQ(folder.files(), 1);
}

TEST_F(AtomicFileTest, CheckingChangesNothing) {
  check_replaceable(file);
  EXPECT_EQ(folder.files(), 0);
  replace_file(file, "old");
  check_replaceable(file);
  EXPECT_EQ(contents(file), "old");
}

TEST_F(AtomicFileTest, KeepsTheOldContentsWithoutCommit) {
  replace_file(file, "old");
  {
    AtomicFile out(file);
    out.write("new");
    EXPECT_EQ(contents(file), "old");
  }
  EXPECT_EQ(contents(file), "old");
  EXPECT_EQ(folder.files(), 1);
}

TEST_F(AtomicFileTest, KeepsLinksAndPermissions) {
  const std::string link = folder / "link.html";
  constexpr auto kOwner = fs::perms::owner_read | fs::perms::owner_write;
  replace_file(file, "old");
  fs::permissions(file, kOwner);
  fs::create_symlink(file, link);
  replace_file(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(contents(file), "new");
  EXPECT_EQ(fs::status(file).permissions(), kOwner);
  EXPECT_EQ(folder.files(), 2);
}

TEST_F(AtomicFileTest, GivesTheReason) {
  EXPECT_THAT(complaint([&] { replace_file(folder / "no/page.html", "text"); }),
              HasSubstr("/no/page.html: No such file or directory"));
  EXPECT_THAT(complaint([&] { replace_file(folder.path(), "text"); }),
              HasSubstr("Is a directory"));
  EXPECT_THAT(complaint([&] { replace_file("/dev/full", "text"); }),
              HasSubstr("cannot write /dev/full: No space left on device"));
}

// The disk is full after so many bytes: every possible place is tried.
TEST_F(AtomicFileTest, AFullDiskLeavesTheOldFile) {
  const std::string text = "the new contents";
  replace_file(file, "old");
  for (size_t room = 0; room < text.size(); ++room) {
    size_t left = room;
    FileCalls calls;
    calls.write = [&](int to, const void* from, size_t count) -> ssize_t {
      if (left == 0) return errno = ENOSPC, -1;
      const ssize_t written = ::write(to, from, std::min({count, left, size_t{3}}));
      left -= static_cast<size_t>(written);
      return written;
    };
    EXPECT_THAT(complaint([&] {
                  AtomicFile out(file, calls);
                  out.write(text);
                  out.commit();
                }),
                HasSubstr("No space left on device"));
    EXPECT_EQ(contents(file), "old");
    EXPECT_EQ(folder.files(), 1);
  }
}

TEST_F(AtomicFileTest, AFailingSyncOrRenameLeavesTheOldFile) {
  replace_file(file, "old");
  FileCalls no_sync, no_rename;
  no_sync.sync = [](int) { return errno = EIO, -1; };
  no_rename.rename = [](const char*, const char*) { return errno = EACCES, -1; };
  for (const FileCalls& calls : {no_sync, no_rename}) {
    AtomicFile out(file, calls);
    out.write("new");
    EXPECT_THROW(out.commit(), std::runtime_error);
    EXPECT_THROW(out.write("more"), std::runtime_error);
    EXPECT_EQ(contents(file), "old");
    EXPECT_EQ(folder.files(), 1);
  }
}

TEST_F(AtomicFileTest, SyncsBeforeTheRenameAndTheFolderAfterIt) {
  std::string order;
  FileCalls calls;
  calls.sync = [&](int) { return order += "sync ", 0; };
  calls.rename = [&](const char* from, const char* to) {
    order += "rename ";
    return std::rename(from, to);
  };
  AtomicFile out(file, calls);
  out.write("new");
  out.commit();
  EXPECT_EQ(order, "sync rename sync ");
}

TEST_F(AtomicFileTest, RefusesASecondWriter) {
  AtomicFile first(file);
  first.write("first");
  EXPECT_THAT(complaint([&] { AtomicFile second(file); }),
              HasSubstr("another process is writing it"));
  first.commit();
  EXPECT_EQ(contents(file), "first");
}

TEST_F(AtomicFileTest, DoesNotFollowALinkInTheTemporaryPlace) {
  replace_file(folder / "precious", "kept");
  fs::create_symlink(folder / "precious", file + ".tmp");
  EXPECT_THROW(replace_file(file, "new"), std::runtime_error);
  EXPECT_EQ(contents(folder / "precious"), "kept");
}

TEST_F(AtomicFileTest, TakesOverWhatAKilledWriterLeft) {
  replace_file(file, "old");
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile out(file);
    out.write("half of something long");
    _exit(9);  // no destructor runs
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(contents(file), "old");
  EXPECT_EQ(folder.files(), 2);
  replace_file(file, "new");
  EXPECT_EQ(contents(file), "new");
  EXPECT_EQ(folder.files(), 1);
}

}  // namespace
}  // namespace lagwise::data
