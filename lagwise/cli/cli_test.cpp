// The program as a user meets it: exit codes, one line per failure, suggestions.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/cli/program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/cli/versions.h"
#include "lagwise/core/errors.h"

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  int code;
  std::string out, err;
};

void break_data() { throw DataError("a.npy", 6, "version 1"); }
void break_option() { throw std::invalid_argument("alibi: unknown option 'x'"); }
void break_training() { throw Diverged("the loss is NaN at step 12"); }
void break_off() { throw Interrupted("saved run/last at step 12"); }
void break_memory() { throw std::bad_alloc(); }
void break_lines() { throw std::runtime_error("first\n  second\n"); }
void break_oddly() { throw 42; }
void break_torch() { TORCH_CHECK(false, "rotate: expected x [B, H, N, D], got [3]"); }
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
  verb->add_subcommand("oddly")->callback(break_oddly);
  verb->add_subcommand("torch")->callback(break_torch);
  verb->add_subcommand("nested")->callback(break_nested);
  verb->add_subcommand("need")->add_option("--it")->required();
}

Outcome lagwise(std::vector<std::string> words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_program({add_break, add_doctor}, std::move(words));
  const std::string err = ::testing::internal::GetCapturedStderr();
  return {code, ::testing::internal::GetCapturedStdout(), err};
}

void expect_failure(const std::vector<std::string>& words, int code,
                    const std::string& line) {
  const Outcome outcome = lagwise(words);
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
  expect_failure({"break", "oddly"}, 1,
                 "failed with something that is no std::exception");
  expect_failure({"break", "nested"}, 1, "could not start");
}

TEST(Program, ShowsAnErrorOfTorchWithoutItsBacktrace) {
  expect_failure({"break", "torch"}, 1, "rotate: expected x [B, H, N, D], got [3]");
}

TEST(Program, SuggestsTheVerbThatWasMeant) {
  expect_failure({"dcotor"}, 2,
                 "'dcotor' is no verb of lagwise; did you mean 'doctor'? (see lagwise "
                 "--help)");
  expect_failure({"--trace=false", "zebra"}, 2,
                 "'zebra' is no verb of lagwise (see lagwise --help)");
  expect_failure(
      {"break", "dtaa"}, 2,
      "'dtaa' is no verb of lagwise break; did you mean 'data'? (see lagwise "
      "break --help)");
}

TEST(Program, SuggestsTheOptionThatWasMeant) {
  expect_failure({"doctor", "--josn"}, 2,
                 "unexpected '--josn'; did you mean '--json'?");
  expect_failure({"doctor", "--josn=1"}, 2,
                 "unexpected '--josn=1'; did you mean '--json'?");
  expect_failure({"--verison"}, 2, "unexpected '--verison'; did you mean '--version'?");
  expect_failure({"doctor", "doctor"}, 2, "unexpected 'doctor'");
  expect_failure({"break", "doctor"}, 2,
                 "'doctor' is no verb of lagwise break (see lagwise break --help)");
}

TEST(Program, AsksForAVerb) {
  expect_failure({}, 2, "lagwise needs a verb: break, doctor (see lagwise --help)");
  const Outcome outcome = lagwise({"break"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, StartsWith("lagwise: lagwise break needs a verb: data, "));
}

TEST(Program, NamesARequiredOptionThatIsMissing) {
  expect_failure({"break", "need"}, 2, "--it is required");
}

TEST(Program, TellsMoreWithTraceBeforeOrAfterTheVerb) {
  for (const auto& words : {std::vector<std::string>{"--trace", "break", "nested"},
                            std::vector<std::string>{"break", "nested", "--trace"}}) {
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, StartsWith("lagwise: could not start\n"));
    EXPECT_THAT(outcome.err, HasSubstr("runtime_error"));
    EXPECT_THAT(outcome.err, HasSubstr("lagwise::DataError: a.npy, byte 6"));
  }
  EXPECT_THAT(lagwise({"break", "torch", "--trace"}).err,
              HasSubstr("Exception raised"));
}

TEST(Program, HelpListsTheVerbsAndDocumentsTheExitCodes) {
  const Outcome outcome = lagwise({"--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* text : {"doctor", "--trace", "--version", "Exit codes:", "\n  2 ",
                           "\n  3 ", "\n  4 ", "\n  130 "})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  EXPECT_THAT(lagwise({"doctor", "--help"}).out, HasSubstr("--json"));
}

TEST(Program, PrintsItsVersion) {
  const Outcome outcome = lagwise({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, version_line() + "\n");
  EXPECT_THAT(outcome.out,
              ::testing::MatchesRegex(
                  "lagwise [0-9.]+ \\(torch [0-9.]+, Highway [0-9.]+\\)\n"));
}

TEST(Doctor, SaysWhatIsThereAndWhatIsSwitchedOff) {
  const Outcome outcome = lagwise({"doctor"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* text : {"versions\n", "machine\n", "simd\n", "threads\n",
                           "features\n", "OPENBLAS_NUM_THREADS", "AVX-512", " GB"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
}

TEST(Doctor, PrintsJsonForMachines) {
  const Outcome outcome = lagwise({"doctor", "--json"});
  EXPECT_EQ(outcome.code, 0);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["versions"]["lagwise"], lagwise_version());
  EXPECT_GE(json["machine"]["cores"], 1);
  EXPECT_GT(json["machine"]["memory_bytes"], 1000000);
  EXPECT_EQ(json["simd"]["chosen"], json["simd"]["usable"][0]);
  EXPECT_GE(json["threads"]["torch"], 1);
  for (const auto& feature : json["features"]) {
    EXPECT_TRUE(feature["on"].is_boolean());
    EXPECT_NE(feature["why"], "") << feature["name"];
  }
}

}  // namespace
}  // namespace lagwise::cli
