#include "lagwise/core/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lagwise {
namespace {

struct Row {
  std::string_view name;
  int number;
};

Registry<Row> three() {
  Registry<Row> registry("fruit");
  registry.add({"pear", 1});
  registry.add({"apple", 2});
  registry.add({"quince", 3});
  return registry;
}

TEST(Registry, SortsItsRowsByName) {
  const auto registry = three();
  std::vector<std::string_view> names;
  for (const Row& row : registry.rows()) names.push_back(row.name);
  EXPECT_THAT(names, ::testing::ElementsAre("apple", "pear", "quince"));
}

TEST(Registry, FindsARow) { EXPECT_EQ(three().find("quince").number, 3); }

TEST(Registry, ListsWhatThereIsAndSuggestsTheNearest) {
  try {
    three().find("aple");
    FAIL() << "found 'aple'";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("unknown fruit 'aple'"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("did you mean 'apple'"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("apple, pear, quince"));
  }
}

TEST(Registry, RefusesTheSameNameTwice) {
  auto registry = three();
  EXPECT_THROW(registry.add({"pear", 4}), std::logic_error);
}

}  // namespace
}  // namespace lagwise
