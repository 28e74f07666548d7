// `lagwise train` as a user meets it: the real program, killed, stopped, starved and
// given wrong things.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "lagwise/cli/testing_child.h"
#include "lagwise/cli/train_progress.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::Child;
using lagwise::testing::contents;
using lagwise::testing::put;
using lagwise::testing::sleep_for;
using lagwise::testing::TempFolder;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// A folder with a text and a recipe so small that a step takes milliseconds. A line
/// comes for each step, and a checkpoint for every other.
class TrainVerb : public ::testing::Test {
 protected:
  TrainVerb() {
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "line " + std::to_string(i * i % 97) + "\n";
    put(scratch / "text.txt", text);
    put(scratch / "tiny.toml",
        "title = \"tiny\"\n"
        "[model]\nlayers = 1\ndim = 16\nheads = 2\ndropout = 0.1\n"
        "encoding = \"sine_spe:sines=2,realizations=4\"\n"
        "[data]\ntask = \"language\"\nlength = 32\npath = \"" +
            scratch / "text.txt" +
            "\"\n"
            "[train]\nsteps = 160\nbatch = 4\naccumulate = 2\nlog_every = 1\n"
            "checkpoint_every = 2\neval_every = 10\neval_examples = 4\nwarmup = 5\n"
            "threads = 2\n");
  }

  std::vector<std::string> words(const std::string& out,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"train", scratch / "tiny.toml", "--out",
                                    scratch / out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  void train_to_the_end(const std::string& out) const {
    Child child(words(out));
    ASSERT_EQ(child.wait(), 0) << child.output();
    EXPECT_THAT(child.output(), HasSubstr("done: "));
  }

  void expect_same_ends(const std::string& a, const std::string& b) const {
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
      const std::string file = std::string("/checkpoints/00000160/") + name;
      const std::string bytes = contents(scratch / (a + file));
      EXPECT_GT(bytes.size(), 5000u);
      EXPECT_TRUE(bytes == contents(scratch / (b + file))) << name;
    }
  }

  /// Ends with that code and says something.
  std::string fails(int code, const std::string& out,
                    const std::vector<std::string>& more) const {
    Child child(words(out, more));
    EXPECT_EQ(child.wait(), code) << child.output();
    return child.output();
  }

  TempFolder scratch;
};

TEST_F(TrainVerb, EndsWithTheSameBitsAfterTwentyKills) {
  train_to_the_end("whole");
  std::mt19937 dice(7);
  const auto roll = [&](int count) {
    return static_cast<int>(dice() % unsigned(count));
  };
  int resumed = 0;
  for (int kill = 0; kill < 20; ++kill) {
    Child child(words("parts"));
    // One in five while it starts, the others some steps later: just after a line, when
    // it evaluates, saves or goes on.
    if (kill % 5 == 0)
      sleep_for(0.01 * roll(30));
    else
      child.read_lines(2 + roll(9));
    sleep_for(0.001 * roll(12));
    child.send(SIGKILL);
    EXPECT_EQ(child.wait(), -SIGKILL) << child.output();
    resumed += child.output().find("going on after step") != std::string::npos;
  }
  EXPECT_GT(resumed, 10);
  train_to_the_end("parts");
  expect_same_ends("whole", "parts");
}

TEST_F(TrainVerb, SavesWhenInterruptedAndGoesOn) {
  train_to_the_end("whole");
  {
    Child child(words("parts"));
    ASSERT_TRUE(child.read_lines(8));
    child.send(SIGINT);
    EXPECT_EQ(child.wait(), 130) << child.output();
    EXPECT_THAT(child.output(), HasSubstr("lagwise: stopped and saved at step "));
  }
  train_to_the_end("parts");
  expect_same_ends("whole", "parts");
  Child again(words("parts"));
  EXPECT_EQ(again.wait(), 0);
  EXPECT_THAT(again.output(), HasSubstr("is finished: 160 steps"));
}

TEST_F(TrainVerb, SavesWhenTheTerminalOrTheReaderIsGone) {
  train_to_the_end("whole");
  for (const int signal : {SIGHUP, SIGPIPE}) {
    const std::string run = "gone" + std::to_string(signal);
    {
      Child child(words(run, {"--set", "train.checkpoint_every=1000"}));
      ASSERT_TRUE(child.read_lines(4));
      if (signal == SIGHUP)  // once from the shell, once from the system
        child.send(SIGHUP), child.send(SIGHUP);
      else
        child.stop_reading();
      EXPECT_EQ(child.wait(), 130) << child.output();
    }
    EXPECT_FALSE(fs::is_empty(scratch / (run + "/checkpoints")));
    train_to_the_end(run);
    expect_same_ends("whole", run);
  }
}

TEST_F(TrainVerb, KeepsTheLastCheckpointWhereTheDiskIsFull) {
  train_to_the_end("whole");
  {
    Child child(words("parts"));
    ASSERT_TRUE(child.read_lines(8));
    child.send(SIGINT);
    ASSERT_EQ(child.wait(), 130);
  }
  const auto checkpoints = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(scratch / "parts/checkpoints"))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  };
  const std::vector<std::string> before = checkpoints();
  Child starved(words("parts"), 10000);
  EXPECT_EQ(starved.wait(), 1);
  EXPECT_THAT(starved.output(), HasSubstr("File too large"));
  EXPECT_THAT(starved.output(), HasSubstr(before.back() + " still stands"));
  EXPECT_EQ(checkpoints(), before);
  train_to_the_end("parts");
  expect_same_ends("whole", "parts");
}

TEST_F(TrainVerb, SaysWhatIsWrongInOneLineWithItsExitCode) {
  EXPECT_THAT(fails(2, "a", {"--set", "train.stepz=3"}),
              HasSubstr("unknown key 'train.stepz'; did you mean 'train.steps'?"));
  // The attention cannot serve it: which encodings it can.
  const std::string unserved = fails(2, "a", {"--set", "model.encoding=shaw"});
  EXPECT_THAT(unserved,
              AllOf(HasSubstr("shaw"), HasSubstr("rope"), HasSubstr("alibi")));
  EXPECT_EQ(std::count(unserved.begin(), unserved.end(), '\n'), 1);
  put(scratch / "empty.txt", "");
  EXPECT_THAT(fails(3, "a", {"--set", "data.path=" + scratch / "empty.txt"}),
              HasSubstr("empty.txt"));
  EXPECT_THAT(fails(3, "a", {"--set", "data.path=" + scratch / "none.txt"}),
              HasSubstr("none.txt"));
  EXPECT_FALSE(fs::exists(scratch / "a"));  // nothing is left behind
  EXPECT_THAT(fails(4, "wild", {"--set", "train.lr=1e30"}),
              AllOf(HasSubstr("is not finite at step"), HasSubstr(", first "),
                    HasSubstr("last good checkpoint: ")));
}

TEST_F(TrainVerb, TrainsOnASetWithoutASplitToJudgeBy) {
  Child making({"data", "language", scratch / "text.txt", "--valid", "0", "--test", "0",
                "--out", scratch / "set"});
  ASSERT_EQ(making.wait(), 0) << making.output();
  for (const std::string& change : {"data.path=" + scratch / "set",
                                    std::string("data.task=language:test=0,valid=0")}) {
    Child child(words("unjudged" + std::to_string(change.size()),
                      {"--set", change, "--set", "train.steps=4"}));
    EXPECT_EQ(child.wait(), 0) << child.output();
    EXPECT_THAT(child.output(),
                AllOf(HasSubstr("the data has no split valid: nothing is evaluated"),
                      HasSubstr("done: ")));
  }
}

TEST_F(TrainVerb, RefusesACheckpointOfAnotherShape) {
  for (const char* dim : {"16", "32"}) {
    Child child(words(dim, {"--set", std::string("model.dim=") + dim}));
    ASSERT_TRUE(child.read_lines(6));
    child.send(SIGINT);
    ASSERT_EQ(child.wait(), 130);
  }
  const auto newest = [&](const char* run) {
    fs::path last;
    for (const auto& entry :
         fs::directory_iterator(scratch / (std::string(run) + "/checkpoints")))
      last = std::max(last, entry.path());
    return last;
  };
  fs::remove_all(newest("16"));
  fs::copy(newest("32"), scratch.path() / "16/checkpoints" / newest("32").filename());
  EXPECT_THAT(fails(3, "16", {}),
              HasSubstr("expected the tensors of this model; different: "
                        "embed.weight [256, 16], in the file [256, 32]"));
}

TEST(TrainProgress, WritesTimesAndBars) {
  EXPECT_EQ(duration_text(12.4), "12 s");
  EXPECT_EQ(duration_text(250), "4 min 10 s");
  EXPECT_EQ(duration_text(3720), "1 h 02 min");
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(bar_text(0, 4), "[....]");
  EXPECT_EQ(bar_text(0.5, 4), "[##..]");
  EXPECT_EQ(bar_text(7, 4), "[####]");
}

}  // namespace
}  // namespace lagwise::cli
