#include "lagwise/data/sets/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

using Tokens = std::vector<int64_t>;

Tokens all_of(const ExampleSplit& split, int64_t example, int part = 0) {
  Tokens out(static_cast<size_t>(split.length(example, part)));
  split.read(example, part, 0, out);
  return out;
}

struct Examples : ::testing::Test {
  const TempFolder folder;
  const Example one{2, {5, 6, 7}, {1}}, empty{0, {}, {3, 4}};

  ExampleSet in_memory(ExampleLayout layout) const {
    ExampleSet set(layout);
    set.add("train", one);
    set.add("train", empty);
    set.add("test", one);
    return set;
  }
  ExampleSet prepared(ExampleLayout layout) const {
    ExampleWriter writer(folder / "set", {"a test", "toy", 8, {}, {{"side", "4"}}},
                         layout, 3);
    writer.add("train", one);
    writer.add("train", empty);
    writer.add("test", one);
    writer.commit();
    return ExampleSet(folder / "set", "toy", layout);
  }
};

TEST_F(Examples, AreTheSameInMemoryAndPrepared) {
  for (const bool paired : {false, true})
    for (const bool labelled : {false, true}) {
      const ExampleLayout layout{labelled, paired};
      const ExampleSet sets[] = {in_memory(layout), prepared(layout)};
      for (const ExampleSet& set : sets) {
        SCOPED_TRACE(std::to_string(paired) + std::to_string(labelled));
        const ExampleSplit& train = set.split("train");
        ASSERT_EQ(train.size(), 2);
        EXPECT_EQ(all_of(train, 0), (Tokens{5, 6, 7}));
        EXPECT_EQ(all_of(train, 1), Tokens{});
        if (labelled) {
          EXPECT_EQ(train.label(0), 2);
        }
        if (paired) {
          EXPECT_EQ(all_of(train, 0, 1), Tokens{1});
        }
        if (paired) {
          EXPECT_EQ(all_of(train, 1, 1), (Tokens{3, 4}));
        }
        EXPECT_EQ(set.split("test").size(), 1);
        EXPECT_EQ(set.splits(), (std::vector<std::string>{"test", "train"}));
      }
    }
}

TEST_F(Examples, AreReadFromAnyPlace) {
  const ExampleSet sets[] = {in_memory({}), prepared({})};
  for (const ExampleSet& set : sets) {
    Tokens two(2);
    set.split("train").read(0, 0, 1, two);
    EXPECT_EQ(two, (Tokens{6, 7}));
    EXPECT_THROW(set.split("train").read(0, 0, 2, two), std::out_of_range);
  }
}

TEST_F(Examples, HaveAHashOfAllTheyHold) {
  const uint64_t hash = in_memory({}).hash();
  EXPECT_EQ(in_memory({}).hash(), hash);
  ExampleSet more = in_memory({});
  more.add("train", one);
  EXPECT_NE(more.hash(), hash);
  ExampleSet label(ExampleLayout{}), other(ExampleLayout{});
  label.add("train", {1, {5}, {}});
  other.add("train", {0, {5}, {}});
  EXPECT_NE(label.hash(), other.hash());
}

TEST_F(Examples, ListTheSplitsThereAre) {
  try {
    in_memory({}).split("valid");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "no split 'valid'; the data has test, train");
  }
}

TEST_F(Examples, KeepWhatTheirMakerSaid) {
  const ExampleSet set = prepared({});
  EXPECT_EQ(set.number("side"), 4);
  EXPECT_EQ(set.number("classes"), 3);
  EXPECT_EQ(set.number("vocabulary"), 8);
  EXPECT_THAT(
      data_error([&] { set.number("patch"); }),
      HasSubstr("manifest.json: expected a whole number as info.patch, got ''"));
  EXPECT_EQ(set.number("patch", 1), 1);
  EXPECT_EQ(set.number("side", 1), 4);
  EXPECT_TRUE(set.class_names().empty());
}

TEST_F(Examples, KeepTheNamesOfTheirClasses) {
  {
    ExampleWriter writer(folder / "named", {"", "toy", 2, {}, {}}, {}, 2);
    writer.add("train", {1, {0, 1}, {}});
    writer.note_classes({"no", "yes, \"indeed\""});
    writer.commit();
  }
  const ExampleSet set(folder / "named", "toy", {});
  EXPECT_EQ(set.class_names(), (std::vector<std::string>{"no", "yes, \"indeed\""}));
}

TEST_F(Examples, RefuseAManifestThatCountsMoreClassesThanItNames) {
  {
    ExampleWriter writer(folder / "set", {"", "toy", 2, {}, {}}, {}, 2);
    writer.add("train", {1, {0, 1}, {}});
    writer.note_classes({"no", "yes"});
    writer.note("classes", INT32_MAX);
    writer.commit();
  }
  const ExampleSet set(folder / "set", "toy", {});
  EXPECT_THAT(data_error([&] { set.class_names(); }),
              HasSubstr("expected a name for each of 2147483647 classes, got none as "
                        "info.class_2"));
}

TEST_F(Examples, KeepToTheVocabularyOfTheirSet) {
  {
    // The shard has room for labels up to 9.
    ShardSetWriter writer(
        folder / "set", {"", "toy", 10, {}, {{"vocabulary", "4"}, {"classes", "10"}}});
    writer.add("train", std::vector<int32_t>{9, 3, 5});
    writer.commit();
  }
  const ExampleSet set(folder / "set", "toy", {});
  set.expect_vocabulary(4);
  EXPECT_THAT(data_error([&] { set.expect_vocabulary(256); }),
              HasSubstr("manifest.json: expected 256 as info.vocabulary, got 4"));
  EXPECT_EQ(set.split("train").label(0), 9);
  Tokens one(1), two(2);
  set.split("train").read(0, 0, 0, one);
  EXPECT_EQ(one, (Tokens{3}));
  EXPECT_THAT(data_error([&] { set.split("train").read(0, 0, 0, two); }),
              HasSubstr("train.bin: expected tokens below 4, got 5 in sequence 0"));
}

TEST_F(Examples, MakeRoomForLabelsAboveTheVocabulary) {
  {
    ExampleWriter writer(folder / "wide", {"", "toy", 2, {}, {}}, {}, 10);
    writer.add("train", {9, {0, 1}, {}});
    writer.commit();
  }
  const ExampleSet set(folder / "wide", "toy", {});
  EXPECT_EQ(set.split("train").label(0), 9);
  EXPECT_EQ(set.number("vocabulary"), 2);
}

TEST_F(Examples, RefuseASetOfAnotherKind) {
  prepared({});
  EXPECT_THAT(data_error([&] { ExampleSet(folder / "set", "images", {}); }),
              HasSubstr("expected a set of scheme 'images', got 'toy'"));
}

TEST_F(Examples, RefuseASetWithoutLabelsOrPairs) {
  {
    ShardSetWriter writer(folder / "bad", {"", "toy", 8, {}, {}});
    writer.add("train", {});
    writer.commit();
  }
  EXPECT_THAT(data_error([&] { ExampleSet(folder / "bad", "toy", {}); }),
              HasSubstr("train.bin: expected a label in sequence 0"));
  EXPECT_THAT(data_error([&] {
                ExampleSet(folder / "bad", "toy", {false, true});
              }),
              HasSubstr("train.bin: expected pairs of sequences"));
}

}  // namespace
}  // namespace lagwise::data
