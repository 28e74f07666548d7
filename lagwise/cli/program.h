#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lagwise::cli {

/// Exit codes, and the exception behind each.
enum ExitCode {
  kOk = 0,
  kOther = 1,          ///< any exception not named below
  kUsage = 2,          ///< a command line CLI11 refuses; std::invalid_argument
  kData = 3,           ///< lagwise::DataError
  kDiverged = 4,       ///< lagwise::Diverged
  kPeerLost = 5,       ///< lagwise::dist::LostPeer
  kInterrupted = 130,  ///< lagwise::Interrupted; 128 + SIGINT, as shells do
};

/// Thrown where all has been said and only the code is left: another process of ours
/// ended with it.
struct EndWith {
  int code;
};

/// The flag with which any command is read and nothing is done.
constexpr const char* kParseOnly = "--parse-only";

using AddVerb = void (*)(CLI::App& app);

/// The program `lagwise`: reads the words after the program's name, runs the verb
/// they ask for and returns an ExitCode. Never throws: a failure becomes one line
/// on stderr, "lagwise: ...", and more lines with --trace.
int run_program(const std::vector<AddVerb>& verbs, std::vector<std::string> words);

}  // namespace lagwise::cli
