#include "lagwise/data/formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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
  const MappedFile moved = std::move(file);
  EXPECT_EQ(text_of(moved.bytes()), "hello");
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
              HasSubstr("expected a regular file"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(data_error([&] { MappedFile(folder / "pipe"); }),
              HasSubstr("expected a regular file"));
}

}  // namespace
}  // namespace lagwise::data
