// `lagwise data PATH`: what it recognises, and what it says to go on with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/grooves.h"
#include "lagwise/data/testing_images.h"

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
  EXPECT_THAT(
      look(folder / "it's.txt"),
      HasSubstr("it'\\''s.txt' --set data.length=4\n"));  // five bytes are valid
}

/// Each recipe it names is one of recipes/: train/recipes_test.cpp knows them.
TEST_F(DataLook, KnowsAWayFromEveryKind) {
  put(folder / "c/train-images-idx3-ubyte", "");
  EXPECT_THAT(look(folder / "c"), HasSubstr("recipes/images-mnist.toml"));
  put(folder / "i/cat/1.png", "");
  put(folder / "i/dog/1.png", "");
  EXPECT_THAT(look(folder / "i"),
              HasSubstr("--set data.task=images:size=32,patch=2\n"));
  put(folder / "l/basic_train.tsv", "");
  EXPECT_THAT(look(folder / "l"), HasSubstr("recipes/listops.toml"));
  put(folder / "t.csv", "text,label\na,x\nb,y\n");
  EXPECT_THAT(look(folder / "t.csv"), HasSubstr("recipes/text-imdb.toml"));
  ASSERT_EQ(run({"data", "pairs", "--made", "5", "--out", folder / "set"}).code, 0);
  EXPECT_THAT(look(folder / "set"), HasSubstr("recipes/pairs.toml --set data.path="));
}

/// What it advises, as pasted into a shell in the folder beside recipes/; one step of
/// training is enough to see that nothing is refused.
struct DataAdvice : DataLook {
  const std::filesystem::path before = std::filesystem::current_path();
  int runs = 0;

  DataAdvice() {
    std::filesystem::current_path(folder.path());
    std::filesystem::create_directory_symlink(
        std::filesystem::path(LAGWISE_SOURCE_DIR) / "recipes", "recipes");
  }
  ~DataAdvice() override { std::filesystem::current_path(before); }

  void make(std::vector<std::string> words, const std::string& set) {
    words.insert(words.begin(), "data");
    words.insert(words.end(), {"--out", set});
    const Outcome outcome = run(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void expect_to_go_on(const std::string& path) {
    SCOPED_TRACE(path);
    std::istringstream said(look(path));
    bool trained = false;
    for (std::string line; std::getline(said, line);) {
      if (!line.starts_with("  lagwise ")) continue;
      std::istringstream in(line.substr(std::string("  lagwise ").size()));
      std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
      if (words[0] == "train") {
        trained = true;
        for (const char* set : {"steps=1", "batch=2", "warmup=1", "eval_examples=1"})
          words.insert(words.end(), {"--set", std::string("train.") + set});
        words.insert(words.end(), {"--out", "run" + std::to_string(++runs)});
      }
      const Outcome outcome = run_captured({verb("data"), verb("train")}, words);
      EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
    }
    EXPECT_TRUE(trained);
  }
};

std::string some_text(int numbers) {
  std::string text;
  for (int i = 0; i < numbers; ++i) text += std::to_string(i * 7919 % 10007) + " ";
  return text;
}

std::string chorale_file() {
  std::string steps = "[60, 55, 52, 48]";
  for (int i = 0; i < 200; ++i) steps += ", [60, 55, 52, 48]";
  return "{\"train\": [[" + steps + "]], \"valid\": [[" + steps + "]]}";
}

TEST_F(DataAdvice, HoldsOfSetsOfText) {
  put("./a.txt", some_text(20000));
  make({"language", "a.txt"}, "bytes");
  make({"language", "a.txt", "--tokens", "bpe:300"}, "pieces");
  put("./t.csv", "text,label\nfine,1\nbad,0\n");
  make({"text", "t.csv"}, "texts");
  put("./p.tsv", "source\ttarget\n" + std::string(50, 'a') + "\tb\n");
  make({"pairs", "p.tsv"}, "pairs-set");
  put("./r.tsv", "1\ta\tb\tone\ttwo\n0\ta\tb\tx\ty\n");
  make({"retrieval", "r.tsv"}, "passages");
  for (const char* set : {"bytes", "pieces", "texts", "pairs-set", "passages"})
    expect_to_go_on(set);
}

TEST_F(DataAdvice, HoldsOfOtherSets) {
  put_cifar("cifar");
  make({"images", "cifar"}, "pixels");
  make({"images", "cifar", "--patch", "2"}, "squares");
  make({"listops", "--train", "9", "--valid", "2", "--test", "2", "--longer-than",
        "200", "--shorter-than", "300"},
       "lists");
  EXPECT_THAT(look("lists"), HasSubstr(" --set data.length=2"));
  make({"pathfinder", "--train", "3", "--valid", "1", "--test", "1", "--patch", "4"},
       "paths");
  put("./c.json", chorale_file());
  make({"harmonise", "c.json"}, "chorales");
  for (const char* set : {"pixels", "squares", "lists", "paths", "chorales"})
    expect_to_go_on(set);
}

TEST_F(DataAdvice, HoldsOfSetsOfMusic) {
  std::filesystem::create_directory("songs");
  for (const int song : {1, 2, 3, 4})
    data::write_smf("songs/" + std::to_string(song) + ".mid",
                    data::Grooves().song(song));
  for (const char* scheme : {"remi", "groove", "groove:velocities=4"}) {
    make({"midi", "songs", "--tokens", scheme}, scheme);
    expect_to_go_on(scheme);
  }
  expect_to_go_on("songs");
}

TEST_F(DataAdvice, HoldsOfWhatIsNotPrepared) {
  put("./c.json", chorale_file());
  put("./t.csv", "text,label\nfine,1\nbad,0\n");
  put("./a.txt", some_text(20000));
  put_cifar("cifar");
  const std::string picture = data::grey_png({4, 4, std::vector<uint8_t>(16, 7)});
  for (const char* name : {"cat", "dog"})
    put(std::string("pictures/") + name + "/1.png", picture);
  put("pf/imgs/1/a.png", picture);
  put("pf/metadata/1.npy", "imgs/1 a.png 0 1\n");
  make({"listops", "--tsv", "--train", "9", "--valid", "2", "--test", "2"}, "tables");
  for (const char* path :
       {"c.json", "t.csv", "a.txt", "cifar", "pictures", "pf", "tables"})
    expect_to_go_on(path);
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
