// From a text to a masked model, to its gaps filled, to a classifier that begins with its
// weights: data, train, eval, generate, predict.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Outcome masked_lagwise(std::vector<std::string> words) {
  return run_captured({verb("data"), verb("train"), verb("eval"), verb("generate"),
                       verb("predict"), verb("export")},
                      std::move(words));
}

class MaskedVerbs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    std::string text, table = "sentence\tlabel\n";
    // What is rare only gives the tokenizer enough to learn.
    for (int i = 0; i < 300; ++i)
      text += i % 20 == 19 ? " some quiet birds sang above a harbour \n"
              : i % 2      ? " the cat sat on the mat \n"
                           : " the dog ran to the park \n";
    for (int i = 0; i < 40; ++i)
      table += i % 2 ? "the cat sat\t1\n" : "the dog ran\t0\n";
    put(file("a.txt"), text);
    put(file("t.tsv"), table);
    run({"data", "language", file("a.txt"), "--tokens", "bpe:290", "--out",
         file("set")});
    put(file("masked.toml"), recipe("masked", file("set"), 400));
    run({"train", file("masked.toml"), "--out", file("masked")});
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::string recipe(const std::string& task, const std::string& path,
                            int steps) {
    return "[model]\nlayers = 1\ndim = 32\nheads = 2\nencoding = "
           "\"rope:layout=half\"\n[data]\ntask = \"" +
           task + "\"\npath = \"" + path +
           "\"\nlength = 16\n[train]\nsteps = " + std::to_string(steps) +
           "\nbatch = 16\nlr = 1e-2\nwarmup = 1\nthreads = 1\neval_examples = 4\n";
  }
  static std::string file(const std::string& name) { return *folder_ / name; }
  static std::string run(const std::vector<std::string>& words) {
    const Outcome outcome = masked_lagwise(words);
    EXPECT_EQ(outcome.code, 0) << words[0] << ": " << outcome.err;
    return outcome.out;
  }
  static TempFolder* folder_;
};

TempFolder* MaskedVerbs::folder_ = nullptr;

TEST_F(MaskedVerbs, AreJudgedByPseudoPerplexity) {
  const std::string text = run({"eval", file("masked"), "--pseudo", "3"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("masked loss "), HasSubstr("accuracy "),
                    HasSubstr("pseudo-perplexity "), HasSubstr("3 windows of test")));
  const json kept = json::parse(contents(file("masked/eval/pseudo-test.json")));
  EXPECT_EQ(kept["tokens"], 48);
  EXPECT_NEAR(kept["perplexity"].get<double>(), std::exp(kept["loss"].get<double>()),
              1e-9);
  EXPECT_LT(kept["perplexity"].get<double>(), 3);
  const json none =
      json::parse(run({"eval", file("masked"), "--pseudo", "0", "--json"}));
  EXPECT_FALSE(none.contains("pseudo"));
  EXPECT_TRUE(none["metric"]["more"].contains("accuracy"));
}

TEST_F(MaskedVerbs, FillTheGapsOfAText) {
  const std::string text = run({"generate", file("masked"), "--fill",
                                "the cat [MASK] on the mat", "--top", "2"});
  EXPECT_THAT(text, HasSubstr("the cat sat on the mat\n[MASK] 1:  \" sat\" "));
  run({"generate", file("masked"), "--fill", "[MASK]"});
  const json found = json::parse(run(
      {"generate", file("masked"), "--fill", " the dog ran to [MASK] park", "--json"}));
  EXPECT_EQ(found["filled"], " the dog ran to the park");
  EXPECT_EQ(found["gaps"][0]["candidates"].size(), 5u);
  EXPECT_EQ(found["gaps"][0]["candidates"][0]["text"], " the");
  EXPECT_GT(found["gaps"][0]["candidates"][0]["probability"].get<double>(), 0.5);
}

TEST_F(MaskedVerbs, KeepWhatTheyFilledForThePage) {
  run({"generate", file("masked"), "--fill", "the [MASK] sat", "--out",
       file("masked/samples")});
  const json card =
      json::parse(contents(file("masked/samples/fill-the-mask-sat-seed0-1.json")));
  EXPECT_EQ(card["prompt"], "the [MASK] sat");
  EXPECT_THAT(std::string(card["text"]), HasSubstr(std::string(card["filled"])));
}

TEST_F(MaskedVerbs, SayWhatTheyNeed) {
  const auto refused = [](const std::vector<std::string>& words) {
    const Outcome outcome = masked_lagwise(words);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_THAT(refused({"generate", file("masked"), "--prompt", "the"}),
              HasSubstr("fills in what is hidden: expected --fill"));
  EXPECT_THAT(refused({"generate", file("masked"), "--fill", "the cat"}),
              HasSubstr("--fill: expected a text with [MASK] in it, got 'the cat'"));
  EXPECT_THAT(
      refused({"generate", file("masked"), "--fill", "[MASK]", "--prompt", "a"}),
      HasSubstr("--prompt excludes --fill"));
  EXPECT_THAT(refused({"export", file("masked"), "--out", file("x.lagwise")}),
              HasSubstr("encoder_lm"));
}

TEST_F(MaskedVerbs, LendTheirTokenizerAndWeightsToAClassifier) {
  run({"data", "text", file("t.tsv"), "--tokenizer", file("masked"), "--out",
       file("texts")});
  EXPECT_EQ(contents(file("texts/tokenizer.json")),
            contents(file("set/tokenizer.json")));
  put(file("text.toml"), recipe("text", file("texts"), 40));
  const std::string said =
      run({"train", file("text.toml"), "--set", "train.from=" + file("masked"), "--set",
           "train.freeze=embed.*", "--out", file("text")});
  EXPECT_THAT(said, AllOf(HasSubstr("begins with "), HasSubstr("290 rows of 291"),
                          HasSubstr("begun anew: head.out.weight"),
                          HasSubstr("frozen: 9280 of ")));
  const json found = json::parse(run({"predict", file("text"), "--text", "the dog ran",
                                      "--text", "the cat sat", "--json"}));
  EXPECT_EQ(found["predictions"][0]["label"], "0");
  EXPECT_EQ(found["predictions"][1]["label"], "1");
  EXPECT_THAT(masked_lagwise({"generate", file("text"), "--fill", "[MASK]"}).err,
              HasSubstr("--fill: expected a run of the task masked"));
}

TEST_F(MaskedVerbs, LendNothingToOtherTokens) {
  put(file("bytes.toml"), recipe("text", file("t.tsv"), 5));
  const Outcome bytes =
      masked_lagwise({"train", file("bytes.toml"), "--set",
                      "train.from=" + file("masked"), "--out", file("bytes")});
  EXPECT_EQ(bytes.code, 2);
  EXPECT_THAT(bytes.err,
              AllOf(HasSubstr("its tokens are the 290 tokens of a tokenizer, "
                              "those of the data bytes"),
                    HasSubstr("--tokenizer " + file("masked"))));
  put(file("b.txt"), "other words make another tokenizer, with other pieces of words");
  run({"data", "language", file("b.txt"), "--tokens", "bpe:290", "--valid", "0",
       "--test", "0", "--out", file("other")});
  run({"data", "text", file("t.tsv"), "--tokenizer", file("other"), "--out",
       file("others")});
  put(file("others.toml"), recipe("text", file("others"), 5));
  const Outcome others =
      masked_lagwise({"train", file("others.toml"), "--set",
                      "train.from=" + file("masked"), "--out", file("run")});
  EXPECT_EQ(others.code, 2);
  EXPECT_THAT(others.err, HasSubstr("tokenizer, "));
  EXPECT_FALSE(std::filesystem::exists(file("run")));
}

TEST_F(MaskedVerbs, LendNoTokenizerThatIsNotThere) {
  put(file("byte.toml"), recipe("masked", file("a.txt"), 2));
  run({"train", file("byte.toml"), "--out", file("byte")});
  const auto refused = [&](const std::string& from) {
    const Outcome outcome = masked_lagwise(
        {"data", "text", file("t.tsv"), "--tokenizer", from, "--out", file("none")});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused(file("byte")), HasSubstr("leave --tokenizer out"));
  std::filesystem::create_directories(file("empty"));
  EXPECT_THAT(refused(file("empty")), HasSubstr("(--tokenizer)"));
  EXPECT_THAT(refused(file("nothing.json")), HasSubstr("nothing.json"));
}

}  // namespace
}  // namespace lagwise::cli
