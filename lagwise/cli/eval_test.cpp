// `lagwise eval` and `lagwise generate` on a model that was trained for a moment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lagwise/cli/eval/lengths.h"
#include "lagwise/cli/eval/text.h"
#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::contents;
using lagwise::testing::put;
using lagwise::testing::TempFolder;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text_of(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += "line " + std::to_string(i * i) + " says caf\xC3\xA9\n";
  return text;
}

/// A run of a few steps on a few lines, at a length of 16 bytes.
class TrainedRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    put(*folder_ / "corpus/all.txt", text_of(300));
    train("linear", "rope:layout=half");
    train("table", "learned:max=40");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static void train(const std::string& name, const std::string& encoding) {
    const std::string recipe = *folder_ / (name + ".toml");
    put(recipe, "[model]\nlayers = 1\ndim = 16\nheads = 2\nencoding = \"" + encoding +
                    "\"\n[data]\ntask = \"language:valid=0.3,test=0.3\"\nlength = 16\n"
                    "path = \"" +
                    *folder_ / "corpus" +
                    "\"\n[train]\nsteps = 6\nbatch = 4\nwarmup = 1\nthreads = 1\n");
    const Outcome trained = lagwise({"train", recipe, "--out", run(name)});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }

  static std::string run(const std::string& name = "linear") { return *folder_ / name; }

  static TempFolder* folder_;
};

TempFolder* TrainedRun::folder_ = nullptr;

TEST_F(TrainedRun, HasNoLossWhereAWeightIsNaN) {
  namespace fs = std::filesystem;
  const std::string broken = *folder_ / "broken",
                    state = "/checkpoints/00000006/state.json";
  fs::remove_all(broken);
  fs::copy(run(), broken, fs::copy_options::recursive);
  std::string bytes = contents(broken + "/checkpoints/00000006/model.safetensors");
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xC0\x7F", 4));
  put(broken + "/checkpoints/00000006/model.safetensors", bytes);
  const Outcome damaged = lagwise({"eval", broken});
  EXPECT_EQ(damaged.code, 3);
  EXPECT_THAT(damaged.err, HasSubstr("00000006/model.safetensors: expected the hash"));
  json old = json::parse(contents(broken + state));  // of a version without hashes
  old.erase("files"), old.erase("fnv1a");
  put(broken + state, old.dump());
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--stream", "--to", "64"}}) {
    std::vector<std::string> words = {"eval", broken};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 4);
    EXPECT_THAT(outcome.err, HasSubstr(broken + ", step 6, on test is not finite"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("nan")));
  }
}

TEST_F(TrainedRun, IsJudgedByMetricAndByPosition) {
  const Outcome outcome = lagwise({"eval", run(), "--windows", "5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("bits per byte "));
  EXPECT_THAT(outcome.out, HasSubstr("a blind guess: bits per byte 8\n"));
  EXPECT_THAT(outcome.out, HasSubstr("5 windows of 128, trained at 16"));
  for (const char* span : {"0 to 0.5x", "0.5x to 1x", "1x to 2x", "2x to 4x"})
    EXPECT_THAT(outcome.out, HasSubstr(span));
  EXPECT_THAT(outcome.out, HasSubstr("4x to 8x: longer context "));
  const json metric = json::parse(contents(run() + "/eval/metric-test.json"));
  EXPECT_EQ(metric["step"], 6);
  EXPECT_EQ(metric["guess"], 8);
  EXPECT_NEAR(metric["value"].get<double>(),
              metric["loss"].get<double>() / std::log(2.0), 1e-6);
  const json position = json::parse(contents(run() + "/eval/position-test.json"));
  EXPECT_EQ(position["trained"], 16);
  EXPECT_EQ(position["length"], 128);
  EXPECT_EQ(position["buckets"].size(), 64U);
  for (const json& part : position["buckets"])
    for (const char* key : {"begin", "end", "loss", "error", "restart", "restart_error",
                            "difference", "difference_error"})
      EXPECT_TRUE(part[key].is_number()) << key;
}

TEST_F(TrainedRun, PrintsWhatItWritesAsJson) {
  const Outcome outcome = lagwise(
      {"eval", run(), "--json", "--split", "valid", "--lengths", "1x,40", "--last"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json all = json::parse(outcome.out);
  EXPECT_EQ(all["position"],
            json::parse(contents(run() + "/eval/position-valid.json")));
  EXPECT_EQ(all["metric"], json::parse(contents(run() + "/eval/metric-valid.json")));
  EXPECT_EQ(all["position"]["length"], 40);
}

TEST_F(TrainedRun, KeepsApartWhatIsNotOfAllItsOwnData) {
  const std::string eval = run() + "/eval/";
  const auto judge = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"eval", run(), "--windows", "2"});
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  };
  judge({});
  const std::string metric = contents(eval + "metric-test.json");
  const std::string position = contents(eval + "position-test.json");
  const json own = json::parse(metric);
  EXPECT_EQ(own["data"]["path"], *folder_ / "corpus");
  EXPECT_EQ(own["examples"], own["of"]);
  EXPECT_EQ(own["data"], json::parse(position)["data"]);

  judge({"--examples", "3", "--lengths", "none"});
  const json part = json::parse(contents(eval + "metric-test~examples=3.json"));
  EXPECT_EQ(part["examples"], 3);
  EXPECT_EQ(part["of"], own["of"]);

  put(*folder_ / "other/all.txt", text_of(200) + "and more");
  const Outcome other = judge({"--data", *folder_ / "other", "--examples", "3"});
  EXPECT_THAT(other.err, HasSubstr("other: not the data " + run() + " was trained on"));
  const std::string stem = other.out.substr(other.out.find("~data="), 22);
  EXPECT_EQ(json::parse(contents(eval + "metric-test" + stem +
                                 "~examples=3.json"))["data"]["path"],
            *folder_ / "other");
  EXPECT_TRUE(std::filesystem::exists(eval + "position-test" + stem + ".json"));

  EXPECT_EQ(contents(eval + "metric-test.json"), metric);
  EXPECT_EQ(contents(eval + "position-test.json"), position);
  std::filesystem::copy(*folder_ / "corpus", *folder_ / "moved");
  EXPECT_EQ(judge({"--data", *folder_ / "moved", "--lengths", "none"}).err, "");
  EXPECT_EQ(json::parse(contents(eval + "metric-test.json"))["data"]["path"],
            *folder_ / "moved");
}

TEST_F(TrainedRun, IsNoLongerWhatCompareAskedForOnceJudgedAnew) {
  const std::string marker = run() + "/eval/compare.json";
  put(marker, "{}");
  lagwise({"eval", run(), "--stream", "--to", "64", "--chunk", "64"});
  EXPECT_TRUE(std::filesystem::exists(marker));  // compare reads no streams
  lagwise({"eval", run(), "--lengths", "none"});
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST_F(TrainedRun, TimesDecodingApartFromAStream) {
  lagwise({"eval", run(), "--stream", "--to", "128", "--chunk", "64"});
  lagwise({"eval", run(), "--stream", "--to", "8", "--chunk", "1"});
  const auto chunk = [&](const std::string& kind) {
    return json::parse(contents(run() + "/eval/" + kind + "-test.json"))["chunk"];
  };
  EXPECT_EQ(chunk("stream"), 64);
  EXPECT_EQ(chunk("decode"), 1);
}

TEST_F(TrainedRun, IsJudgedAlongAStream) {
  const Outcome outcome =
      lagwise({"eval", run(), "--stream", "--to", "300", "--chunk", "64"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("0 to 64"));
  const json stream = json::parse(contents(run() + "/eval/stream-test.json"));
  ASSERT_EQ(stream["points"].size(), 5U);
  EXPECT_EQ(stream["points"][4]["end"], 300);
  EXPECT_EQ(stream["points"][0]["state_bytes"], stream["points"][3]["state_bytes"]);
  EXPECT_THAT(
      lagwise({"eval", run(), "--stream", "--to", "99999999", "--chunk", "64"}).out,
      HasSubstr("the split 'test' has only"));
}

TEST_F(TrainedRun, GoesAsFarAsATableReachesAndSaysSo) {
  const Outcome outcome = lagwise({"eval", run("table"), "--windows", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no windows of 128 tokens: learned: position"));
  EXPECT_THAT(outcome.err, HasSubstr("no windows of 64 tokens: learned: position"));
  EXPECT_THAT(outcome.out, HasSubstr("2 windows of 32"));
  const Outcome refused = lagwise({"eval", run("table"), "--lengths", "4x"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("table of 40 positions"));
}

TEST_F(TrainedRun, RefusesWhatIsNoLengthOrSplit) {
  const Outcome length = lagwise({"eval", run(), "--lengths", "2y"});
  EXPECT_EQ(length.code, 2);
  EXPECT_THAT(length.err, HasSubstr("such as 2x, numbers of tokens such as 800"));
  const Outcome split = lagwise({"eval", run(), "--split", "tset"});
  EXPECT_EQ(split.code, 2);
  EXPECT_THAT(split.err, AllOf(HasSubstr("--split: no split"), HasSubstr("valid")));
  EXPECT_EQ(lagwise({"eval", run(), "--to", "100"}).code, 2);  // of no stream
  EXPECT_EQ(lagwise({"eval", *folder_ / "nothing"}).code, 3);
}

TEST_F(TrainedRun, WritesTheSameTextForTheSameSeed) {
  const std::vector<std::string> words = {"generate", run(), "--prompt", "line 4",
                                          "--length", "60",  "--seed",   "3"};
  const Outcome one = lagwise(words);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, StartsWith("line 4"));
  EXPECT_THAT(one.err, HasSubstr("tokens/s"));
  EXPECT_EQ(lagwise(words).out, one.out);
  std::vector<std::string> many = words;
  many.insert(many.end(), {"--count", "3"});
  const Outcome three = lagwise(many);
  EXPECT_THAT(three.out, StartsWith("--- sample 1 of 3 ---\n" + one.out));
  EXPECT_THAT(three.out, HasSubstr("--- sample 3 of 3 ---\nline 4"));
  std::vector<std::string> other = words;
  other.back() = "4";
  EXPECT_NE(lagwise(other).out, one.out);
}

TEST_F(TrainedRun, ShowsAsMuchOfAPromptAsItWasGiven) {
  const std::vector<std::string> some = {
      "generate",        run(), "--prompt", "line 44",
      "--prompt-tokens", "6",   "--length", "20"};
  const std::vector<std::string> all = {"generate", run(),      "--prompt",
                                        "line 4",   "--length", "20"};
  EXPECT_EQ(lagwise(some).out, lagwise(all).out);
}

TEST_F(TrainedRun, NeedsNoPromptAndNoData) {
  EXPECT_EQ(lagwise({"generate", run(), "--length", "20"}).code, 0);
  const Outcome moved = lagwise({"generate", run(), "--data", *folder_ / "gone",
                                 "--prompt", "x", "--length", "20"});
  EXPECT_EQ(moved.code, 0) << moved.err;
}

TEST_F(TrainedRun, KeepsACardOfWhatItWrote) {
  const std::string out = *folder_ / "samples";
  put(*folder_ / "prompt.txt", "line 9");
  const Outcome outcome =
      lagwise({"generate", run(), "--prompt-file", *folder_ / "prompt.txt", "--length",
               "30", "--count", "2", "--out", out, "--json", "--top-k", "5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json all = json::parse(outcome.out);
  ASSERT_EQ(all["samples"].size(), 2U);
  EXPECT_EQ(all["samples"][1], json::parse(contents(out + "/line-9-seed0-k5-2.json")));
  EXPECT_EQ(all["samples"][0]["prompt"], "line 9");
  EXPECT_EQ(all["samples"][0]["top_k"], 5);
  EXPECT_EQ(all["samples"][0]["tokens"].size(), 30U);
  EXPECT_EQ(contents(out + "/line-9-seed0-k5-1.txt"),
            "line 9" + all["samples"][0]["text"].get<std::string>() + "\n");
}

TEST_F(TrainedRun, RefusesSettingsThatMakeNoSense) {
  const auto refused = [](const std::string& flag, const std::string& value,
                          const std::string& line) {
    const Outcome outcome = lagwise({"generate", run(), flag, value});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(line));
    EXPECT_EQ(outcome.out, "");
  };
  refused("--temperature", "-1", "expected a number from 0 to 1000, got '-1'");
  refused("--temperature", "warm", "expected a number from 0 to 1000, got 'warm'");
  refused("--top-p", "1.5", "expected a number from 0 to 1, got '1.5'");
  refused("--top-p", "nan", "expected a number from 0 to 1, got 'nan'");
  refused("--top-k", "-2", "expected a whole number from 0");
  refused("--min-p", "1.5", "expected a number from 0 to 1, got '1.5'");
  refused("--repetition-penalty", "0", "expected a number from 0.01 to 100, got '0'");
  refused("--repetition-window", "-1", "expected a whole number from 0");
  refused("--stop", "", "--stop: expected a text of one token or more, got ''");
  refused("--count", "0", "expected a whole number from 1 to 4096");
  refused("--length", "0", "expected a whole number from 1");
  refused("--temprature", "1", "did you mean '--temperature'?");
}

/// Chorales of 12 sixteenths whose voices stand still.
std::string chorales() {
  json steps = json::array();
  for (int i = 0; i < 12; ++i) steps.push_back({72, 67, 64, 48});
  const json some = json::array({steps, steps});
  return json{{"train", some}, {"valid", some}, {"test", some}}.dump();
}

TEST(Harmonising, AnswersASopranoVoiceByVoice) {
  const TempFolder folder;
  put(folder / "Jsb16thSeparated.json", chorales());
  put(folder / "recipe.toml",
      "[model]\nlayers = 1\ndim = 16\nheads = 2\n[data]\ntask = \"harmonise\"\n"
      "length = 24\npath = \"" +
          folder / "Jsb16thSeparated.json" +
          "\"\n[train]\nsteps = 4\nbatch = 2\nwarmup = 1\nthreads = 1\n");
  const std::string run = folder / "run";
  const Outcome trained = lagwise({"train", folder / "recipe.toml", "--out", run});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome judged = lagwise({"eval", run});
  EXPECT_EQ(judged.code, 0) << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("nats per sixteenth"));
  EXPECT_THAT(judged.out, HasSubstr("loss by position is for language models"));
  for (const char* prompt : {"C5:4 D5:4", "valid:1"}) {
    const Outcome outcome =
        lagwise({"generate", run, "--prompt", prompt, "--count", "2", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json samples = json::parse(outcome.out)["samples"];
    const size_t sixteenths = std::string(prompt) == "valid:1" ? 12 : 8;
    EXPECT_EQ(samples[0]["tokens"].size(), 3 * sixteenths);
    EXPECT_NE(samples[0]["text"], "");
  }
  const Outcome bar = lagwise(
      {"generate", run, "--source", "C5:16 D5:8", "--prompt-bars", "1", "--json"});
  ASSERT_EQ(bar.code, 0) << bar.err;
  EXPECT_EQ(json::parse(bar.out)["samples"][0]["tokens"].size(), 48u);
  const Outcome silent = lagwise({"generate", run});
  EXPECT_EQ(silent.code, 2);
  EXPECT_THAT(silent.err, HasSubstr("expected notes such as C5"));
}

TEST(EvalLengths, AreMultiplesOrTokensInOrder) {
  EXPECT_EQ(lengths_asked("4x,1x,100,1x,0.5x", 64),
            (std::vector<int64_t>{32, 64, 100, 256}));
  EXPECT_TRUE(lengths_asked("none", 64).empty());
  for (const char* wrong : {"", "x", "0", "-1x", "1.5", "2xx", "1x,,2x", "1e99"})
    EXPECT_THROW(lengths_asked(wrong, 64), std::invalid_argument) << wrong;
}

TEST(EvalText, JudgesByTheInterval) {
  PositionLoss part;
  part.difference = 0.02, part.difference_error = 0.01;
  EXPECT_THAT(verdict(part), HasSubstr("longer context harms (+0.020 ± 0.010 nats"));
  part.difference = -0.02;
  EXPECT_THAT(verdict(part), HasSubstr("longer context is used"));
  part.difference_error = 0.03;
  EXPECT_THAT(verdict(part), HasSubstr("neither helps nor harms"));
  part.difference = -0.0003, part.difference_error = 0.0001;
  EXPECT_THAT(verdict(part), HasSubstr("neither helps nor harms (-0.000 ± 0.000 nats"));
  part.difference_error = INFINITY;
  EXPECT_THAT(verdict(part), HasSubstr("cannot tell"));
}

TEST_F(TrainedRun, RefusesWhatItCannotReadOrWriteBeforeItWrites) {
  const auto refused = [&](int code, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"generate", run(), "--length", "4"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    return outcome.err;
  };
  EXPECT_THAT(refused(3, {"--prompt-file", *folder_ / "corpus"}),
              HasSubstr("corpus: expected a readable file, got a folder"));
  EXPECT_THAT(refused(3, {"--prompt-file", *folder_ / "none"}),
              HasSubstr("none: expected a readable file: No such file"));
  EXPECT_THAT(refused(1, {"--out", *folder_ / "linear.toml"}),
              HasSubstr("cannot make the folder " + *folder_ / "linear.toml: "));
  EXPECT_THAT(refused(1, {"--out", "/proc/x"}),
              HasSubstr("cannot make the folder /proc/x: "));
}

TEST_F(TrainedRun, ReadsAPromptFromStdin) {
  std::istringstream in("line 4");
  std::streambuf* const before = std::cin.rdbuf(in.rdbuf());
  const Outcome outcome =
      lagwise({"generate", run(), "--length", "4", "--prompt-file", "-"});
  std::cin.rdbuf(before);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, StartsWith("line 4"));
  EXPECT_THAT(outcome.err, StartsWith("4 tokens in "));
}

}  // namespace
}  // namespace lagwise::cli
