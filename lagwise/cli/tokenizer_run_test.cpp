// From text to a model of pieces of words and back: data, train, eval, generate, export.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/data/text/tokenizer.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using nlohmann::json;
using ::testing::HasSubstr;

struct TokenizerRun : ::testing::Test {
  const TempFolder folder;

  void make(const std::string& tokens) {
    std::string text;
    for (int i = 0; i < 400; ++i) text += " the cat sat on the mat \n";
    put(folder / "a.txt", text);
    run({"data", "language", folder / "a.txt", "--tokens", tokens, "--out",
         folder / "set"});
    put(folder / "r.toml",
        "[model]\nlayers = 1\ndim = 16\nheads = 2\nencoding = \"rope:layout=half\"\n"
        "attention = \"linear\"\n[data]\ntask = \"language\"\npath = \"" +
            folder / "set" +
            "\"\nlength = 16\n[train]\nsteps = 80\nbatch = 8\nlr = 1e-2\nwarmup = 1\n"
            "threads = 1\neval_examples = 4\n");
    run({"train", folder / "r.toml", "--out", folder / "run"});
  }
  std::string run(const std::vector<std::string>& words) {
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 0) << words[0] << ": " << outcome.err;
    return outcome.out;
  }
  json sample(const std::string& from) {
    const std::string out = run({"generate", from, "--prompt", " the cat", "--length",
                                 "12", "--temperature", "0", "--json"});
    return out.empty() ? json() : json::parse(out)["samples"][0];
  }
};

TEST_F(TokenizerRun, WritesTextFromPiecesOfWords) {
  make("bpe:280");
  const std::string judged =
      run({"eval", folder / "run", "--lengths", "none", "--split", "valid"});
  EXPECT_THAT(judged, HasSubstr("nats per token"));
  EXPECT_THAT(judged, HasSubstr("bits per byte"));
  EXPECT_THAT(judged, HasSubstr("word perplexity"));
  const json written = sample(folder / "run");
  EXPECT_THAT(std::string(written["text"]), HasSubstr("mat"));
  const auto tokenizer = data::load_tokenizer(folder / "set/tokenizer.json");
  std::string decoded;
  for (const json& id : written["tokens"]) decoded += tokenizer->decode(id);
  EXPECT_EQ(written["text"], decoded);
  run({"export", folder / "run", "--out", folder / "m.lagwise"});
  std::filesystem::remove_all(folder / "set");
  EXPECT_EQ(sample(folder / "m.lagwise")["text"], written["text"]);
}

TEST_F(TokenizerRun, WritesTextFromWords) {
  make("word");
  EXPECT_THAT(run({"eval", folder / "run", "--lengths", "none", "--split", "valid"}),
              HasSubstr("unknown tokens"));
  EXPECT_THAT(std::string(sample(folder / "run")["text"]),
              HasSubstr(" sat on the mat"));
}

TEST_F(TokenizerRun, NoticesAnotherTokenizer) {
  make("bpe:280");
  run({"data", "language", folder / "a.txt", "--tokens", "bpe:262", "--out",
       folder / "set"});
  const Outcome judged = lagwise({"eval", folder / "run"});
  EXPECT_EQ(judged.code, 3);
  EXPECT_THAT(judged.err, HasSubstr("vocabulary"));
}

}  // namespace
}  // namespace lagwise::cli
