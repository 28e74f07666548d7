#include "lagwise/data/sources/acl_imdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct AclImdb : ::testing::Test {
  const TempFolder folder;
  std::string complaint() {
    return data_error([&] { list_acl_imdb(folder.path(), "train"); });
  }
};

TEST_F(AclImdb, ListsInOneOrder) {
  for (const char* name :
       {"pos/10_8.txt", "pos/9_10.txt", "neg/0_1.txt", "pos/urls.html"})
    put(folder / ("train/" + std::string(name)), "text");
  const std::vector<Review> reviews = list_acl_imdb(folder.path(), "train");
  ASSERT_EQ(reviews.size(), 3u);
  EXPECT_EQ(reviews[0].label, 0);
  EXPECT_EQ(reviews[1].id, 9);
  EXPECT_EQ(reviews[1].rating, 10);
  EXPECT_THAT(reviews[2].file, HasSubstr("/train/pos/10_8.txt"));
}

TEST_F(AclImdb, NamesWhatIsWrong) {
  EXPECT_THAT(complaint(),
              HasSubstr("/train/neg: expected a folder of reviews: No such file"));
  std::filesystem::create_directories(folder / "train/neg");
  EXPECT_THAT(complaint(),
              HasSubstr("/train/neg: expected reviews as .txt files, got none"));
  for (const char* name :
       {"x_1.txt", "1.txt", "1_0.txt", "1_11.txt", "-1_5.txt", "1_2_3.txt"}) {
    put(folder / ("train/neg/" + std::string(name)), "");
    EXPECT_THAT(complaint(), HasSubstr(std::string(name) + ": expected a name like"))
        << name;
    std::filesystem::remove(folder / ("train/neg/" + std::string(name)));
  }
}

TEST_F(AclImdb, ListsTheRealOne) {
  const std::string imdb = real_data("aclImdb", folder);
  LAGWISE_NEEDS_DATA(imdb, "aclImdb");
  EXPECT_EQ(list_acl_imdb(imdb, "train").size(), 25000u);
}

}  // namespace
}  // namespace lagwise::data
