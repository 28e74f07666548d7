#pragma once

// Support for tests; never part of the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lagwise/cli/program.h"
#include "lagwise/cli/verbs.h"

namespace lagwise::cli {

/// What a command came to.
struct Outcome {
  int code;
  std::string out, err;
};

/// Runs the program with these verbs inside the test.
inline Outcome run_captured(const std::vector<AddVerb>& verbs,
                            std::vector<std::string> words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_program(verbs, std::move(words));
  const std::string err = ::testing::internal::GetCapturedStderr();
  return {code, ::testing::internal::GetCapturedStdout(), err};
}

/// The same with one verb, the first word: lagwise({"list", "attentions"}).
inline Outcome lagwise(const std::vector<std::string>& words) {
  return run_captured({verb(words.at(0))}, words);
}

/// `lagwise compare` with these flags.
inline Outcome compare(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "compare");
  return lagwise(flags);
}

/// That a command failed as it should: with this code, one line on stderr that has `part`
/// in it, and nothing on stdout.
inline void expect_failure(const Outcome& outcome, int code, const std::string& part) {
  EXPECT_EQ(outcome.code, code);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(part));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_EQ(outcome.out, "");
}

}  // namespace lagwise::cli
