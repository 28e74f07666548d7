// From pairs of texts to a model that answers: data, train, eval, generate.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

struct PairsRun : ::testing::Test {
  const TempFolder folder;

  /// Four sources with an answer each, many times.
  PairsRun() {
    std::string table = "source,target\n";
    for (int i = 0; i < 40; ++i)
      table += "red,rouge\ngreen,vert\nblue,bleu\nno,\"n,\"\n";
    put(folder / "a.csv", table);
  }
  void train(const std::string& path) {
    put(folder / "r.toml",
        "[model]\nlayers = 1\ndim = 32\nheads = 2\nencoding = \"sinusoidal\"\n"
        "[data]\ntask = \"pairs\"\npath = \"" +
            path +
            "\"\nlength = 8\n[train]\nsteps = 120\nbatch = 16\nlr = 1e-2\n"
            "warmup = 1\nthreads = 1\neval_examples = 4\n");
    run({"train", folder / "r.toml", "--out", folder / "run"});
  }
  std::string run(const std::vector<std::string>& words) {
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 0) << words[0] << ": " << outcome.err;
    return outcome.out;
  }
};

TEST_F(PairsRun, AnswersWhatItLearned) {
  train(folder / "a.csv");
  const std::string judged = run({"eval", folder / "run"});
  EXPECT_THAT(judged, HasSubstr("token accuracy 1 "));
  EXPECT_THAT(judged, HasSubstr("exact match 1\n"));
  EXPECT_THAT(judged, HasSubstr("chrF 100\n"));
  EXPECT_THAT(judged, Not(HasSubstr("not as wanted")));
  const json kept = json::parse(contents(folder / "run/eval/metric-test.json"));
  EXPECT_EQ(kept["more"]["exact match"], 1.0);

  std::filesystem::remove(folder / "a.csv");  // a run needs no data to answer
  EXPECT_EQ(run({"generate", folder / "run", "--source", "red", "--temperature", "0"}),
            "rouge\n");
  EXPECT_EQ(run({"generate", folder / "run", "--prompt", "green", "--top-k", "1"}),
            "vert\n");
  put(folder / "in.txt", "blue\nred\r\nno\n");
  EXPECT_EQ(run({"generate", folder / "run", "--source-file", folder / "in.txt",
                 "--temperature", "0"}),
            "bleu\nrouge\nn,\n");
  put(folder / "noise", std::string("\x9C\xFF\0\x12", 4));
  expect_failure(
      lagwise({"generate", folder / "run", "--source-file", folder / "noise"}), 3,
      "noise, byte 2: expected text, got a byte 0 in what is no UTF-8");
  const json drawn = json::parse(run({"generate", folder / "run", "--source-file",
                                      folder / "in.txt", "--count", "2", "--json"}));
  ASSERT_EQ(drawn["samples"].size(), 6u);
  EXPECT_EQ(drawn["samples"][3]["prompt"], "red");
}

TEST_F(PairsRun, SaysWhichAnswersAreNotAsWanted) {
  train(folder / "a.csv");
  put(folder / "b.csv", "source,target\nred,rot\nred,rot\nred,rot\nred,rot\n");
  const std::string judged =
      run({"eval", folder / "run", "--data", folder / "b.csv", "--split", "train"});
  EXPECT_THAT(judged, HasSubstr("exact match 0\n"));
  EXPECT_THAT(judged, HasSubstr("not as wanted, such as:\n  red\n    wanted   rot\n"
                                "    written  rouge\n"));
}

TEST_F(PairsRun, GoesByPiecesOfWordsToo) {
  const std::string said = run({"data", "pairs", folder / "a.csv", "--tokens",
                                "bpe:262", "--out", folder / "set"});
  EXPECT_THAT(said, HasSubstr("scheme pairs, 262 words"));
  EXPECT_THAT(said, HasSubstr("data.task = \"pairs\""));
  EXPECT_THAT(said, HasSubstr("data.length of "));
  train(folder / "set");
  EXPECT_EQ(
      run({"generate", folder / "run", "--source", "green", "--temperature", "0"}),
      "vert\n");
  EXPECT_THAT(run({"eval", folder / "run"}), HasSubstr("exact match 1\n"));
  run({"data", "pairs", folder / "a.csv", "--tokenizer", folder / "set/tokenizer.json",
       "--out", folder / "b"});
  EXPECT_EQ(contents(folder / "b/train.bin"), contents(folder / "set/train.bin"));
}

TEST_F(PairsRun, MakesDatesWhereNoTableIsGiven) {
  const std::string said =
      run({"data", "pairs", "--made", "50", "--seed", "3", "--out", folder / "set"});
  EXPECT_THAT(said, HasSubstr("scheme pairs, 256 words"));
  EXPECT_THAT(said, HasSubstr("the longest target 10: data.length"));
}

TEST_F(PairsRun, SaysWhatIsWrongInOneLine) {
  put(folder / "bad.csv", "source,target\nred,rouge\nblue,\n");
  expect_failure(lagwise({"data", "pairs", folder / "bad.csv", "--out", folder / "s"}),
                 3, "bad.csv, row 3, byte 24: expected a target, got an empty field");
  expect_failure(lagwise({"data", "pairs", folder / "a.csv", "--tokens", "word",
                          "--out", folder / "s"}),
                 2, "--tokens: expected byte or bpe:N for pairs, got 'word'");
  expect_failure(lagwise({"data", "pairs", folder / "a.csv", "--made", "3", "--out",
                          folder / "s"}),
                 2, "--made");
  put(folder / "l.txt", std::string(1000, 'a'));
  put(folder / "l.toml",
      "[model]\nlayers = 1\ndim = 16\nheads = 2\n[data]\ntask = \"language\"\n"
      "path = \"" +
          folder / "l.txt" + "\"\nlength = 8\n[train]\nsteps = 1\nthreads = 1\n");
  run({"train", folder / "l.toml", "--out", folder / "l"});
  expect_failure(
      lagwise({"generate", folder / "l", "--prompt", "a", "--prompt-bars", "1"}), 2,
      "a prompt in bars: expected a run of music or harmonise");
  expect_failure(lagwise({"generate", folder / "l", "--source", "a"}), 2,
                 "--source: expected a run of a model that listens");
}

}  // namespace
}  // namespace lagwise::cli
