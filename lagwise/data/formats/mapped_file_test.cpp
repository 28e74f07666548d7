#include "lagwise/data/formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/mapped_places.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

TEST(MappedFile, ShowsTheBytes) {
  const TempFolder folder;
  put(folder / "a", "hello");
  MappedFile file(folder / "a");
  EXPECT_EQ(text_of(file.bytes()), "hello");
  MappedFile moved = std::move(file);
  EXPECT_EQ(text_of(moved.bytes()), "hello");
  put(folder / "b", "there");
  moved = MappedFile(folder / "b");
  EXPECT_EQ(text_of(moved.bytes()), "there");
  EXPECT_EQ(moved.name(), folder / "b");
}

TEST(MappedFile, TakesAnEmptyFile) {
  const TempFolder folder;
  put(folder / "a", "");
  EXPECT_TRUE(MappedFile(folder / "a").bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_THAT(data_error([&] { MappedFile(folder / "none"); }),
              HasSubstr("/none: expected a readable file: No such file"));
  EXPECT_THAT(data_error([&] { MappedFile(folder.path().string()); }),
              HasSubstr("expected a readable file, got a folder"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(data_error([&] { MappedFile(folder / "pipe"); }),
              HasSubstr("expected a readable file, got a pipe or device"));
}

TEST(MappedPlaces, KnowsWhichFileStandsWhere) {
  const TempFolder folder;
  put(folder / "a", "hello"), put(folder / "b", "there");
  const MappedFile a(folder / "a");
  const uint8_t* gone = nullptr;
  {
    const MappedFile b(folder / "b");
    gone = b.bytes().data();
    EXPECT_EQ(MappedPlaces::name_at(gone + 4), folder / "b");
    EXPECT_EQ(MappedPlaces::name_at(gone + 5), nullptr);
  }
  EXPECT_EQ(MappedPlaces::name_at(gone), nullptr);
  EXPECT_EQ(MappedPlaces::name_at(a.bytes().data()), folder / "a");
  const uint8_t on_the_stack = 0;
  EXPECT_EQ(MappedPlaces::name_at(&on_the_stack), nullptr);
}

TEST(MappedPlaces, TellsAFileWrittenToFromOneReplaced) {
  const TempFolder folder;
  put(folder / "a", "hello"), put(folder / "b", "there");
  const MappedFile a(folder / "a"), b(folder / "b");
  EXPECT_TRUE(MappedPlaces::changed().empty());
  replace_file(folder / "b", "other");
  EXPECT_TRUE(MappedPlaces::changed().empty());
  EXPECT_EQ(text_of(b.bytes()), "there");
  put(folder / "a", "hello and more");
  EXPECT_EQ(MappedPlaces::changed(), std::vector<std::string>{folder / "a"});
}

TEST(MappedPlaces, ForgetsTheFilesBeyondItsPlacesAndNoOthers) {
  const TempFolder folder;
  put(folder / "a", "hello");
  std::vector<MappedFile> many;
  for (int i = 0; i < 100; ++i) many.emplace_back(folder / "a");
  EXPECT_EQ(MappedPlaces::name_at(many.front().bytes().data()), folder / "a");
  EXPECT_EQ(MappedPlaces::name_at(many.back().bytes().data()), nullptr);
  many.clear();
  const MappedFile again(folder / "a");
  EXPECT_EQ(MappedPlaces::name_at(again.bytes().data()), folder / "a");
}

}  // namespace
}  // namespace lagwise::data
