// `lagwise predict`: labels come out as the data had them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using nlohmann::json;
using ::testing::HasSubstr;

std::string recipe(const std::string& task, const std::string& path, int steps) {
  return "[model]\nlayers = 1\ndim = 16\nheads = 2\nencoding = \"none\"\n"
         "attention = \"linear\"\n[data]\ntask = \"" +
         task + "\"\npath = \"" + path +
         "\"\nlength = 16\n[train]\nsteps = " + std::to_string(steps) +
         "\nbatch = 16\nlr = 1e-2\nwarmup = 1\nthreads = 1\neval_examples = 4\n";
}

std::string light_png(uint8_t light) {
  return data::grey_png({4, 4, std::vector<uint8_t>(16, light)});
}

struct Predict : ::testing::Test {
  const TempFolder folder;

  void train(const std::string& task, const std::string& path, int steps) {
    put(folder / "r.toml", recipe(task, path, steps));
    const Outcome trained =
        lagwise({"train", folder / "r.toml", "--out", folder / "run"});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  json predicted(std::vector<std::string> words) {
    words.insert(words.begin(), {"predict", folder / "run"});
    words.push_back("--json");
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out)["predictions"] : json();
  }
};

TEST_F(Predict, GivesTextsTheLabelsOfTheirTable) {
  std::string table = "text;label\n";
  for (int i = 0; i < 40; ++i)
    table += i % 2 ? "aaaa aa;rather good\n" : "zzz zzzz;bad\n";
  put(folder / "t.csv", table);
  train("text", folder / "t.csv", 60);
  put(folder / "one.txt", "aaa aa");
  put(folder / "more.csv", "id,text\n1,zz zz\n2,aaaaa\n");
  const json found = predicted(
      {folder / "one.txt", folder / "more.csv", "--text", "zzzz", "--text", "aa aa"});
  ASSERT_EQ(found.size(), 5u);
  std::vector<std::string> labels;
  for (const json& one : found) {
    labels.push_back(one["label"]);
    double sum = 0;
    for (const auto& [name, share] : one["probabilities"].items())
      sum += share.get<double>();
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_EQ(one["probability"], one["probabilities"][std::string(one["label"])]);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"bad", "rather good", "rather good",
                                              "bad", "rather good"}));
  EXPECT_EQ(found[3]["input"], folder / "more.csv" + ":2");
  const Outcome shown =
      lagwise({"predict", folder / "run", folder / "one.txt", "--top", "1"});
  EXPECT_THAT(shown.out, HasSubstr("one.txt  rather good 0."));
}

TEST_F(Predict, IsJudgedByTheNamesOfClassesNotTheirNumbers) {
  const auto table = [](const std::string& a, const std::string& z) {
    std::string rows = "text;label\n";
    for (int i = 0; i < 40; ++i)
      rows += i % 2 ? "aaaa aa;" + a + "\n" : "zzz zzzz;" + z + "\n";
    return rows;
  };
  put(folder / "t.csv", table("good", "bad"));
  put(folder / "same.csv", table("good", "bad") + "aa;good\n");
  put(folder / "other.csv", table("A-good", "B-bad"));
  train("text", folder / "t.csv", 2);
  const auto judged = [&](const std::string& data) {
    return lagwise({"eval", folder / "run", "--data", folder / data});
  };
  EXPECT_EQ(judged("same.csv").code, 0);
  expect_failure(judged("other.csv"), 3,
                 "other.csv: expected the classes of " + folder / "run" +
                     ": bad, good; got A-good, B-bad");
}

TEST_F(Predict, TakesAnEmptyRowAsTrainingDoes) {
  put(folder / "t.csv", "text,label\na,x\n,y\nc,x\nd,y\n");
  train("text:valid=0,test=0", folder / "t.csv", 1);
  EXPECT_EQ(predicted({folder / "t.csv"}).size(), 4u);
}

TEST_F(Predict, GivesPicturesTheNamesOfTheirFolders) {
  for (int i = 0; i < 8; ++i) {
    put(folder / ("p/dark/" + std::to_string(i) + ".png"),
        light_png(static_cast<uint8_t>(i)));
    put(folder / ("p/light/" + std::to_string(i) + ".png"),
        light_png(static_cast<uint8_t>(240 + i)));
  }
  train("images:patch=2", folder / "p", 60);
  put(folder / "small.png", light_png(244));
  put(folder / "large.png", data::grey_png({8, 12, std::vector<uint8_t>(96, 2)}));
  const json found = predicted({folder / "small.png", folder / "large.png"});
  EXPECT_EQ(found[0]["label"], "light");
  EXPECT_EQ(found[1]["label"], "dark");
}

TEST_F(Predict, SaysWhatIsWrongInOneLine) {
  const auto complaint = [&](std::vector<std::string> words, int code) {
    words.insert(words.begin(), {"predict", folder / "run"});
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  put(folder / "t.tsv", "text\tlabel\na\tx\nb\ty\nc\tx\nd\ty\n");
  train("text:valid=0,test=0", folder / "t.tsv", 1);
  EXPECT_THAT(complaint({}, 2), HasSubstr("expected FILE or --text, got neither"));
  EXPECT_THAT(complaint({folder / "none.txt"}, 3), HasSubstr("none.txt"));
  put(folder / "empty.txt", "");
  EXPECT_THAT(complaint({folder / "empty.txt"}, 3),
              HasSubstr("empty.txt: expected something to classify, got nothing"));
  EXPECT_THAT(complaint({"--text", ""}, 2), HasSubstr("--text: expected something"));
  put(folder / "picture.png", std::string("\x89PNG\r\n\x1A\n\0\0", 10));
  EXPECT_THAT(complaint({folder / "picture.png"}, 3),
              HasSubstr("picture.png, byte 8: expected text, got a byte 0"));
  put(folder / "odd.csv", "body\nx\n");
  EXPECT_THAT(
      complaint({folder / "odd.csv"}, 3),
      HasSubstr("odd.csv, row 1, byte 0: expected a header with a column named"));
  put(folder / "header.csv", "text\n");
  EXPECT_THAT(complaint({folder / "header.csv"}, 3),
              HasSubstr("header.csv: expected something to classify, got nothing"));
  std::filesystem::create_directories(folder / "folder.csv");
  EXPECT_THAT(complaint({folder / "folder.csv"}, 3),
              HasSubstr("folder.csv: expected a readable file, got a folder"));
  put(folder / "l.txt", std::string(1000, 'a'));
  std::filesystem::remove_all(folder / "run");
  train("language", folder / "l.txt", 1);
  EXPECT_THAT(complaint({folder / "l.txt"}, 2),
              HasSubstr("expected a run of a task that classifies files: "));
}

}  // namespace
}  // namespace lagwise::cli
