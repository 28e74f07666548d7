#include "lagwise/data/sets/new_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;
namespace fs = std::filesystem;

struct NewFolderTest : ::testing::Test {
  const TempFolder folder;
  const std::string name = folder / "a/set";
};

TEST(NewFolder, MayHaveANameWithoutASlash) {
  const TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  {
    NewFolder made("set");
    put(made.path() + "/a", "x");
    made.commit();
  }
  std::filesystem::current_path(before);
  EXPECT_EQ(contents(folder / "set/a"), "x");
}

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

TEST_F(NewFolderTest, HasOneWriterAtATime) {
  {
    NewFolder first(name);
    put(first.path() + "/x", "1");
    try {
      NewFolder second(name);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "another process is writing " + name);
    }
    EXPECT_EQ(contents(first.path() + "/x"), "1");  // undisturbed
    first.commit();
  }
  EXPECT_EQ(contents(name + "/x"), "1");
  EXPECT_FALSE(fs::exists(name + ".lock"));
  put(name + "/manifest.json", "{}");
  put(name + ".lock", "");  // left by one that was killed
  NewFolder third(name);
}

TEST_F(NewFolderTest, IsNeverHalfThereWhereManyWriteIt) {
  const auto write = [&](int who) {
    try {
      NewFolder made(name);
      put(made.path() + "/manifest.json", std::to_string(who));
      for (int i = 0; i < 20; ++i)
        put(made.path() + "/" + std::to_string(i), std::to_string(who));
      made.commit();
    } catch (const std::runtime_error&) {  // another one was first
    }
  };
  write(0);
  std::atomic<bool> writing = true;
  std::vector<std::thread> threads;
  for (int who = 1; who <= 4; ++who)
    threads.emplace_back([&, who] {
      for (int i = 0; i < 30; ++i) write(who);
    });
  std::thread looks([&] {
    while (writing) EXPECT_TRUE(fs::exists(name + "/manifest.json"));
  });
  for (std::thread& thread : threads) thread.join();
  writing = false;
  looks.join();
  const std::string who = contents(name + "/manifest.json");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(contents(name + "/" + std::to_string(i)), who);
  EXPECT_FALSE(fs::exists(name + ".tmp"));
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
