#include "lagwise/data/sources/lra_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct LraTables : ::testing::Test {
  const TempFolder folder;
  std::string said;

  std::string file(const std::string& name, const std::string& text) {
    put(folder / name, text);
    return folder / name;
  }
  std::function<void(std::string_view, int)> note() {
    return [this](std::string_view text, int label) {
      said += std::string(text) + "=" + std::to_string(label) + ";";
    };
  }
};

TEST_F(LraTables, ReadsBothFormsOfListops) {
  EXPECT_EQ(each_listops_row(file("a", "Source\tTarget\r\n( [MAX 1 )\t1\r\n"), note()),
            1);
  EXPECT_EQ(each_listops_row(file("b", "4\t[MIN\n5\t7\n"), note()), 2);
  EXPECT_EQ(said, "( [MAX 1 )=1;[MIN=4;7=5;");
}

TEST_F(LraTables, ReadsPairs) {
  const auto note_pair = [this](std::string_view a, std::string_view b, int label) {
    said += std::string(a) + "/" + std::string(b) + "=" + std::to_string(label) + ";";
  };
  EXPECT_EQ(each_retrieval_row(file("a", "1.0\tx\ty\tone \"\ttwo\n0\tx\ty\tc\td\n"),
                               note_pair),
            2);
  EXPECT_EQ(said, "one \"/two=1;c/d=0;");
  EXPECT_THAT(data_error([&] {
                each_retrieval_row(file("b", "2.0\tx\ty\ta\tb\n"), note_pair);
              }),
              HasSubstr("byte 0: expected a label from 0 to 1"));
}

TEST_F(LraTables, NamesTheRowThatIsWrong) {
  EXPECT_THAT(data_error([&] { each_listops_row(file("a", ""), note()); }),
              HasSubstr("empty file"));
  EXPECT_THAT(data_error([&] {
                each_listops_row(file("a", "Source\tTarget\nx\t10\n"), note());
              }),
              HasSubstr("byte 14: expected a label from 0 to 9"));
  for (const char* label : {"", "x", "1x", "-1", "1.5", "99999999999"})
    EXPECT_THROW(each_listops_row(file("a", std::string(label) + "\tx\n"), note()),
                 DataError)
        << label;
}

TEST_F(LraTables, ReadTheRealOnes) {
  const std::string listops = real_data("listops", folder);
  LAGWISE_NEEDS_DATA(listops, "listops");
  const auto ignore = [](std::string_view, int) {};
  EXPECT_EQ(each_listops_row(listops + "/basic_sample.tsv", ignore), 200);
  EXPECT_EQ(each_listops_row(listops + "/nangia_bowman_test_d20s.tsv", ignore), 10000);
}

}  // namespace
}  // namespace lagwise::data
