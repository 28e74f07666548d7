#pragma once

// Support for tests; never part of the program.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lagwise/cli/program.h"

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

}  // namespace lagwise::cli
