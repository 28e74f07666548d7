// `lagwise data PATH`: what it recognises, and what it says to go on with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct DataLook : ::testing::Test {
  const TempFolder folder;

  static Outcome run(const std::vector<std::string>& words) {
    return run_captured({verb("data")}, words);
  }
  static std::string look(const std::string& path) {
    const Outcome outcome = run({"data", path});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }
};

TEST_F(DataLook, SaysWhatItSawAndHowToGoOn) {
  put(folder / "p.tsv", "source\ttarget\nab\tabc\n");
  EXPECT_EQ(
      look(folder / "p.tsv"),
      folder / "p.tsv" +
          ": texts to make of others\n  pairs of texts: train 1\n  the longest "
          "source has 2 bytes, the longest target 3\n\nGo on with\n  lagwise train "
          "recipes/pairs.toml --set data.path=" +
          folder / "p.tsv" + " --set data.length=4\n");
  put(folder / "my songs/a.mid", "");
  EXPECT_THAT(look(folder / "my songs/"),
              HasSubstr("lagwise data midi '" + folder / "my songs/" +
                        "' --tokens groove --out 'my songs-set'\n  lagwise train "
                        "recipes/music-grooves.toml --set 'data.path=my songs-set'\n"));
  put(folder / "it's.txt", std::string(100, 'a'));
  EXPECT_THAT(look(folder / "it's.txt"), HasSubstr("it'\\''s.txt'\n"));
}

/// Each recipe it names is one of recipes/: train/recipes_test.cpp knows them.
TEST_F(DataLook, KnowsAWayFromEveryKind) {
  put(folder / "c/train-images-idx3-ubyte", "");
  EXPECT_THAT(look(folder / "c"), HasSubstr("recipes/images-mnist.toml"));
  put(folder / "i/cat/1.png", "");
  EXPECT_THAT(look(folder / "i"),
              HasSubstr("--set data.task=images:size=32,patch=2\n"));
  put(folder / "l/basic_train.tsv", "");
  EXPECT_THAT(look(folder / "l"), HasSubstr("recipes/listops.toml"));
  put(folder / "t.csv", "text,label\na,x\nb,y\n");
  EXPECT_THAT(look(folder / "t.csv"), HasSubstr("recipes/text-imdb.toml"));
  ASSERT_EQ(run({"data", "pairs", "--made", "5", "--out", folder / "set"}).code, 0);
  EXPECT_THAT(look(folder / "set"), HasSubstr("recipes/pairs.toml --set data.path="));
}

TEST_F(DataLook, ListsTheKindsWhereItKnowsNone) {
  put(folder / "x/a.mid", "");
  put(folder / "x/a.txt", "text");
  const Outcome outcome = run({"data", folder / "x"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("  1 MIDI file\n  1 text\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\n  language     Text as bytes"));
  EXPECT_THAT(outcome.err, HasSubstr("x: expected files of one kind, got several\n"));
}

TEST_F(DataLook, LeavesTheOtherVerbsAlone) {
  EXPECT_EQ(run({"data", "look", folder / "none"}).code, 3);
  const Outcome wrong = run({"data", folder / "none"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("is no verb of lagwise data, and no file is there; "));
  put(folder / "a.txt", "text");
  EXPECT_EQ(run({"data", "text", folder / "a.txt"}).code, 2);  // --out is required
}

}  // namespace
}  // namespace lagwise::cli
