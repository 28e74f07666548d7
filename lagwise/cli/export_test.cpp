// `lagwise export`, and `lagwise generate` with the engine that needs no torch.

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

std::string recipe(const std::string& attention) {
  return "[model]\nlayers = 1\ndim = 16\nheads = 2\nencoding = \"rope:layout=half\"\n"
         "attention = \"" +
         attention +
         "\"\n[data]\ntask = \"music:styles=2,songs=20\"\nlength = 32\n"
         "[train]\nsteps = 2\nbatch = 4\nwarmup = 1\nthreads = 1\neval_examples = 4\n";
}

class ExportedRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    for (const char* attention : {"linear", "exact"}) {
      const std::string name = *folder_ / attention;
      put(name + ".toml", recipe(attention));
      const Outcome trained = lagwise({"train", name + ".toml", "--out", name});
      ASSERT_EQ(trained.code, 0) << trained.err;
    }
    const Outcome made = lagwise({"export", *folder_ / "linear", "--out", file()});
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("f32 weights"));
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string file() { return *folder_ / "song.lagwise"; }

  static json written(std::vector<std::string> words) {
    words.insert(words.begin(), "generate");
    words.push_back("--json");
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
  static json tokens(const json& of) { return of["samples"][0]["tokens"]; }

  static TempFolder* folder_;
};

TempFolder* ExportedRun::folder_ = nullptr;

TEST_F(ExportedRun, WritesTheSameTokensByEveryEngine) {
  const std::vector<std::string> how = {"--prompt", "test:0:20",     "--length",
                                        "80",       "--temperature", "0"};
  const auto by = [&](const std::string& model, const std::string& engine) {
    std::vector<std::string> words = {model, "--engine", engine};
    words.insert(words.end(), how.begin(), how.end());
    return written(words);
  };
  const json torch = by(*folder_ / "linear", "torch");
  const json small = by(*folder_ / "linear", "small");
  const json either = by(*folder_ / "linear", "auto"), exported = by(file(), "auto");
  EXPECT_EQ(torch["engine"], "torch");
  for (const json& each : {small, either, exported}) {
    EXPECT_EQ(each["engine"], "small");
    EXPECT_EQ(tokens(each), tokens(torch));
  }
  EXPECT_EQ(by(*folder_ / "exact", "auto")["engine"], "torch");
}

TEST_F(ExportedRun, IsWrittenInFewerBits) {
  for (const char* weights : {"bf16", "int8"}) {
    const std::string out = *folder_ / weights;
    const Outcome made =
        lagwise({"export", *folder_ / "linear", "--out", out, "--weights", weights});
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_LT(std::filesystem::file_size(out), std::filesystem::file_size(file()));
    EXPECT_EQ(tokens(written({out, "--length", "10"})).size(), 10u);
  }
}

TEST_F(ExportedRun, HasTheLossOfItsRun) {
  for (const auto& [weights, apart] :
       {std::pair("f32", 1e-5), std::pair("int8", 1e-2)}) {
    const std::string out = *folder_ / (std::string("loss.") + weights);
    lagwise({"export", *folder_ / "linear", "--out", out, "--weights", weights});
    const Outcome judged = lagwise(
        {"eval", *folder_ / "linear", "--exported", out, "--examples", "6", "--json"});
    ASSERT_EQ(judged.code, 0) << judged.err;
    const json found = json::parse(judged.out)["exported"];
    EXPECT_EQ(found["targets"], 6 * 32);
    EXPECT_GT(found["loss"], 1.0);
    EXPECT_NEAR(found["rise"], 0.0, apart);
  }
  const Outcome none =
      lagwise({"eval", *folder_ / "linear", "--exported", *folder_ / "linear.toml"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("linear.toml"));
}

TEST_F(ExportedRun, GoesOnFromAStateAsIfItHadNotStopped) {
  const std::string state = *folder_ / "state";
  const auto text = [&](int length, std::vector<std::string> more) {
    std::vector<std::string> words = {file(), "--seed", "4", "--length",
                                      std::to_string(length)};
    words.insert(words.end(), more.begin(), more.end());
    return tokens(written(words));
  };
  json both = text(12, {"--save-state", state});
  const json rest = text(9, {"--state", state});
  both.insert(both.end(), rest.begin(), rest.end());
  EXPECT_EQ(both, text(21, {}));
  EXPECT_EQ(text(9, {"--state", state}), rest);  // as often as one likes
}

TEST_F(ExportedRun, SaysWhatIsWrongInOneLine) {
  const auto refuses = [](std::vector<std::string> words, int code,
                          const std::string& text) {
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
        << outcome.err;
  };
  const std::string run = *folder_ / "linear", exact = *folder_ / "exact";
  const std::string state = *folder_ / "x.state";
  refuses({"export", exact, "--out", *folder_ / "no"}, 2, "expected linear attention");
  refuses({"generate", exact, "--engine", "small"}, 2, "--engine small: layer 0");
  refuses({"generate", file(), "--engine", "torch"}, 2, "--engine torch: expected");
  refuses({"generate", exact, "--state", state}, 2, "--state: expected a model");
  refuses({"generate", exact, "--save-state", state}, 2, "--save-state: expected");
  refuses({"generate", run, "--save-state", state, "--count", "2"}, 2,
          "--save-state: expected one sample");
  refuses({"generate", file(), "--state", state}, 3, "x.state: expected");
  put(*folder_ / "cut.lagwise", contents(file()).substr(0, 3000));
  refuses({"generate", *folder_ / "cut.lagwise"}, 3, "cut.lagwise");
  put(*folder_ / "text", "no model at all");
  refuses({"generate", *folder_ / "text"}, 3, "text");
}

}  // namespace
}  // namespace lagwise::cli
