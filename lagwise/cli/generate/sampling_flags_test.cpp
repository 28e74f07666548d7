#include "lagwise/cli/generate/sampling_flags.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::put;
using lagwise::testing::TempFolder;
using nlohmann::json;

/// A model of bytes after a few steps: it writes nonsense, always the same.
struct Writer {
  Writer() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * i) + " ends\n";
    put(folder / "corpus/all.txt", text);
    put(folder / "recipe.toml",
        "[model]\nlayers = 1\ndim = 16\nheads = 2\n[data]\n"
        "task = \"language:valid=0.3,test=0.3\"\nlength = 16\npath = \"" +
            folder / "corpus" +
            "\"\n[train]\nsteps = 6\nbatch = 4\nwarmup = 1\nthreads = 1\n");
    run({"train", folder / "recipe.toml", "--out", folder / "run"});
  }

  static std::string run(std::vector<std::string> words) {
    const Outcome outcome =
        run_captured({verb("train"), verb("generate")}, std::move(words));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }

  json samples(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "generate", folder / "run", "--prompt", "line 9", "--length", "200", "--count",
        "2",        "--seed",       "5",        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(run(words))["samples"];
  }

  TempFolder folder;
};

TEST(SamplingFlags, EndASampleAfterItsFirstStop) {
  const Writer writer;
  const json whole = writer.samples({});
  const std::string first = whole[0]["text"];
  const size_t at = first.find_first_of("abcdefghijklmnopqrstuvwxyz");
  ASSERT_NE(at, std::string::npos);
  const std::string stop = first.substr(at, 1);
  const json stopped = writer.samples({"--stop", "never said", "--stop", stop});
  EXPECT_EQ(stopped[0]["text"], first.substr(0, at + 1));
  const std::string other = whole[1]["text"];
  EXPECT_EQ(stopped[1]["text"], other.substr(0, other.find(stop)) +
                                    (other.find(stop) < other.size() ? stop : ""));
}

TEST(SamplingFlags, TellHowLikelyTokensWereWhereAsked) {
  const Writer writer;
  const json plain = writer.samples({}), told = writer.samples({"--logprobs"});
  EXPECT_FALSE(plain[0].contains("logprobs"));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(told[i]["text"], plain[i]["text"]);
    const auto logs = told[i]["logprobs"].get<std::vector<double>>();
    ASSERT_EQ(logs.size(), told[i]["tokens"].size());
    for (const double log : logs) EXPECT_LT(log, 0);
  }
}

TEST(SamplingFlags, ReachTheDraw) {
  const Writer writer;
  const auto text = [&](const std::vector<std::string>& flags) {
    return writer.samples(flags)[0]["text"].get<std::string>();
  };
  EXPECT_NE(text({"--repetition-penalty", "5"}), text({}));
  EXPECT_EQ(text({"--repetition-penalty", "5", "--repetition-window", "0"}), text({}));
  EXPECT_EQ(text({"--min-p", "1"}), text({"--temperature", "0"}));
}

}  // namespace
}  // namespace lagwise::cli
