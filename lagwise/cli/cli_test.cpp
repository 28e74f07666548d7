// The program as a user meets it: exit codes, one line per failure, suggestions.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/study/versions.h"

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void break_data() { throw DataError("a.npy", 6, "version 1"); }
void break_option() { throw std::invalid_argument("alibi: unknown option 'x'"); }
void break_training() { throw Diverged("the loss is NaN at step 12"); }
void break_off() { throw Interrupted("saved run/last at step 12"); }
void break_memory() { throw std::bad_alloc(); }
void break_lines() { throw std::runtime_error("first\n  second\n"); }
void break_colours() { throw std::runtime_error("got '\x1B[31mred\a'"); }
void break_oddly() { throw 42; }
void break_torch() { TORCH_CHECK(false, "rotate: expected x [B, H, N, D], got [3]"); }
void break_allocation() {
  TORCH_CHECK(false, "[enforce fail at alloc_cpu.cpp:75] err == 0. ",
              "DefaultCPUAllocator: can't allocate memory");
}
void break_path() {
  throw std::filesystem::filesystem_error("cannot create directories", "/proc/x",
                                          std::make_error_code(std::errc::io_error));
}
void break_nested() {
  try {
    break_data();
  } catch (...) {
    std::throw_with_nested(std::runtime_error("could not start"));
  }
}

// A verb that fails in every way there is.
void add_break(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("break", "fails");
  verb->require_subcommand(1);
  verb->add_subcommand("data")->callback(break_data);
  verb->add_subcommand("option")->callback(break_option);
  verb->add_subcommand("training")->callback(break_training);
  verb->add_subcommand("off")->callback(break_off);
  verb->add_subcommand("memory")->callback(break_memory);
  verb->add_subcommand("lines")->callback(break_lines);
  verb->add_subcommand("colours")->callback(break_colours);
  verb->add_subcommand("oddly")->callback(break_oddly);
  verb->add_subcommand("torch")->callback(break_torch);
  verb->add_subcommand("allocation")->callback(break_allocation);
  verb->add_subcommand("path")->callback(break_path);
  verb->add_subcommand("nested")->callback(break_nested);
  verb->add_subcommand("need")->add_option("--it")->required();
}

Outcome breakable(std::vector<std::string> words) {
  return run_captured({add_break, verb("doctor"), verb("bench")}, std::move(words));
}

void expect_failure(const std::vector<std::string>& words, int code,
                    const std::string& line) {
  const Outcome outcome = breakable(words);
  EXPECT_EQ(outcome.code, code);
  EXPECT_EQ(outcome.err, "lagwise: " + line + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(Program, MapsEachFailureToItsExitCodeAndOneLine) {
  expect_failure({"break", "data"}, 3, "a.npy, byte 6: expected version 1");
  expect_failure({"break", "option"}, 2, "alibi: unknown option 'x'");
  expect_failure({"break", "training"}, 4, "the loss is NaN at step 12");
  expect_failure({"break", "off"}, 130, "saved run/last at step 12");
  expect_failure({"break", "memory"}, 1, "out of memory");
  expect_failure({"break", "lines"}, 1, "first second");
  expect_failure({"break", "colours"}, 1, "got '?[31mred?'");
  expect_failure({"break", "oddly"}, 1,
                 "failed with something that is no std::exception");
  expect_failure({"break", "nested"}, 1, "could not start");
  expect_failure({"break", "allocation"}, 1, "out of memory");
  expect_failure({"break", "path"}, 1, "cannot use /proc/x: Input/output error");
}

TEST(Program, OnlyParsesIfAsked) {
  for (const auto& words :
       {std::vector<std::string>{"--parse-only", "break", "nested"},
        std::vector<std::string>{"break", "nested", "--parse-only"}}) {
    const auto got = breakable(words);
    EXPECT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(got.out + got.err, "");
  }
  EXPECT_EQ(breakable({"break", "nestet", "--parse-only"}).code, 2);
  EXPECT_EQ(breakable({"break", "nested", "--unknown", "--parse-only"}).code, 2);
}

TEST(Program, ShowsAnErrorOfTorchWithoutItsBacktrace) {
  expect_failure({"break", "torch"}, 1, "rotate: expected x [B, H, N, D], got [3]");
}

TEST(Program, ListsTheVerbsAndSuggestsTheOneThatWasMeant) {
  expect_failure({"dcotor"}, 2,
                 "'dcotor' is no verb of lagwise; did you mean 'doctor'? Its verbs: "
                 "break, doctor, bench (see lagwise --help)");
  expect_failure({"--trace=false", "zebra"}, 2,
                 "'zebra' is no verb of lagwise; its verbs: break, doctor, bench (see "
                 "lagwise --help)");
  expect_failure(
      {"bench", "liner"}, 2,
      "'liner' is no verb of lagwise bench; did you mean 'linear'? Its "
      "verbs: linear, favor, encodings, exact, train, crossover, generate, dist "
      "(see lagwise bench --help)");
  expect_failure({"bench", "lin"}, 2,
                 "'lin' is no verb of lagwise bench; its verbs: linear, favor, "
                 "encodings, exact, train, crossover, generate, dist (see "
                 "lagwise bench --help)");
}

TEST(Program, SuggestsTheOptionThatWasMeant) {
  const std::string see = " (see lagwise doctor --help)";
  expect_failure({"doctor", "--josn"}, 2,
                 "unexpected '--josn'; did you mean '--json'?" + see);
  expect_failure({"doctor", "--josn=1"}, 2,
                 "unexpected '--josn=1'; did you mean '--json'?" + see);
  expect_failure({"doctor", "--frob"}, 2, "unexpected '--frob'" + see);
  expect_failure({"doctor", "doctor"}, 2, "unexpected 'doctor'" + see);
  expect_failure(
      {"--verison"}, 2,
      "unexpected '--verison'; did you mean '--version'? (see lagwise --help)");
}

TEST(Program, SaysThatAnOptionBelongsAfterItsVerb) {
  expect_failure({"--json", "doctor"}, 2,
                 "unexpected '--json'; it belongs after 'lagwise doctor' (see lagwise "
                 "doctor --help)");
  expect_failure({"bench", "--json", "linear"}, 2,
                 "unexpected '--json'; it belongs after 'lagwise bench linear' (see "
                 "lagwise bench linear --help)");
  expect_failure(
      {"--threads", "2", "bench", "linear"}, 2,
      "'--threads' is no option of lagwise; those of a verb belong after it: "
      "break, doctor, bench (see lagwise --help)");
}

TEST(Program, HelpsWithAVerb) {
  EXPECT_EQ(breakable({"help", "doctor"}).out, breakable({"doctor", "--help"}).out);
  EXPECT_EQ(breakable({"help", "bench", "linear"}).out,
            breakable({"bench", "linear", "--help"}).out);
  EXPECT_EQ(breakable({"help"}).out, breakable({"--help"}).out);
  EXPECT_EQ(breakable({"help"}).code, 0);
}

TEST(Program, AsksForAVerb) {
  expect_failure({}, 2,
                 "lagwise needs a verb: break, doctor, bench (see lagwise --help)");
  const Outcome outcome = breakable({"break"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, StartsWith("lagwise: lagwise break needs a verb: data, "));
}

TEST(Bench, RefusesWrongThreadCounts) {
  const std::string expected = "--threads: expected a whole number from 1 to 256, got ";
  for (const char* verb : {"linear", "encodings", "crossover"}) {
    for (const std::string text : {"abc", "0", "257", "010", "1.5", "--quick"})
      expect_failure({"bench", verb, "--threads", text}, 2,
                     expected + "'" + text + "'");
    expect_failure(
        {"bench", verb, "--threads"}, 2,
        "--threads needs a value (see lagwise bench " + std::string(verb) + " --help)");
  }
  expect_failure({"bench", "crossover", "--threads", "1", "--threads", "2"}, 2,
                 "--threads was given more than once (see lagwise bench crossover "
                 "--help)");
}

TEST(Bench, RowsOfTrainingNameTheirBaselineAndTheMachine) {
  const Outcome outcome = breakable({"bench", "train", "--quick", "--json", "--only",
                                     "rope", "--threads", "1", "--lengths", "512"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["baseline"], "torch_chunked");
    EXPECT_GT(row["baseline_bytes"], 0);
    for (const char* name : {"cpu", "simd"})
      EXPECT_TRUE(row.contains(name) && row[name].is_string()) << name;
  }
}

TEST(Bench, RefusesAPageThatCannotBeWrittenBeforeMeasuring) {
  const std::vector<std::string> words = {"bench", "crossover", "--html"};
  const auto page = [&](const std::string& file) {
    std::vector<std::string> all = words;
    all.push_back(file);
    return all;
  };
  expect_failure(words, 2, "--html needs a value (see lagwise bench crossover --help)");
  expect_failure(page(""), 2, "--html: expected the name of a file, got ''");
  expect_failure(page("/nonexist/c.html"), 1,
                 "cannot write /nonexist/c.html: No such file or directory");
  const std::string folder = ::testing::TempDir();
  expect_failure(page(folder), 1, "cannot write " + folder + ": Is a directory");
}

TEST(Program, NamesARequiredOptionThatIsMissing) {
  expect_failure({"break", "need"}, 2, "--it is required");
}

TEST(Program, TellsMoreWithTraceBeforeOrAfterTheVerb) {
  for (const auto& words : {std::vector<std::string>{"--trace", "break", "nested"},
                            std::vector<std::string>{"break", "nested", "--trace"}}) {
    const Outcome outcome = breakable(words);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, StartsWith("lagwise: could not start\n"));
    EXPECT_THAT(outcome.err, HasSubstr("runtime_error"));
    EXPECT_THAT(outcome.err, HasSubstr("lagwise::DataError: a.npy, byte 6"));
  }
  EXPECT_THAT(breakable({"break", "torch", "--trace"}).err,
              HasSubstr("Exception raised"));
}

TEST(Program, HelpListsTheVerbsAndDocumentsTheExitCodes) {
  const Outcome outcome = breakable({"--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* text : {"doctor", "--trace", "--version", "Exit codes:", "\n  2 ",
                           "\n  3 ", "\n  4 ", "\n  130 "})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  EXPECT_THAT(breakable({"doctor", "--help"}).out, HasSubstr("--json"));
}

TEST(Program, PrintsItsVersion) {
  const Outcome outcome = breakable({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, version_line() + "\n");
  EXPECT_THAT(outcome.out,
              ::testing::MatchesRegex(
                  "lagwise [0-9.]+ \\(torch [0-9.]+, Highway [0-9.]+\\)\n"));
}

TEST(Doctor, SaysWhatIsThereAndWhatIsSwitchedOff) {
  const Outcome outcome = breakable({"doctor"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* text :
       {"versions\n", "machine\n", "simd\n", "threads\n", "features\n",
        "OPENBLAS_NUM_THREADS", "AVX-512", " GB", "several hosts"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
}

TEST(Doctor, PrintsJsonForMachines) {
  const Outcome outcome = breakable({"doctor", "--json"});
  EXPECT_EQ(outcome.code, 0);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["versions"]["lagwise"], lagwise_version());
  EXPECT_GE(json["machine"]["cores"], 1);
  EXPECT_GT(json["machine"]["memory_bytes"], 1000000);
  EXPECT_EQ(json["simd"]["chosen"], json["simd"]["usable"][0]);
  EXPECT_GE(json["threads"]["torch"], 1);
  EXPECT_EQ(json["threads"]["openmp"].size(), 1u) << json["threads"]["openmp"];
  for (const auto& feature : json["features"]) {
    EXPECT_TRUE(feature["on"].is_boolean());
    EXPECT_NE(feature["why"], "") << feature["name"];
  }
}

}  // namespace
}  // namespace lagwise::cli
