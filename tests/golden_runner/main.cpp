// Runs golden cases: lagwise_golden_test DIR [--not-yet FILE] [--not-supported FILE]
//
// DIR holds cases in the formats of golden_case.h. A case fails where a number is not
// the stored one, where a stored result was not compared, where its method is unknown,
// and where the library lacks a piece of it. Two lists change that:
//
//     not_supported  what the library does not build: not run, counted as skipped
//     not_yet        what it lacks so far. A listed case is run as far as it goes. It
//                    may lack pieces, but what was computed must be right; and one
//                    that passes must leave the list.

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "tests/golden_runner/case_list.h"
#include "tests/golden_runner/golden_run.h"

namespace lagwise::golden {
namespace {

struct Arguments {
  std::string folder, not_yet, not_supported;
};

struct Count {
  int64_t passed = 0, failed = 0, skipped = 0, comparisons = 0;

  Count& operator+=(const Count& other) {
    passed += other.passed, failed += other.failed, skipped += other.skipped;
    comparisons += other.comparisons;
    return *this;
  }
};

struct Verdict {
  std::string family;
  Count count;
  std::vector<std::string> reasons;  ///< why it failed, or was skipped
};

Verdict passed(std::string_view family, int64_t comparisons) {
  return {std::string(family), {.passed = 1, .comparisons = comparisons}, {}};
}
Verdict failed(std::string_view family, std::vector<std::string> reasons) {
  return {std::string(family), {.failed = 1}, std::move(reasons)};
}
Verdict skipped(std::string_view family, std::vector<std::string> reasons,
                int64_t comparisons = 0) {
  const Count count{.skipped = 1, .comparisons = comparisons};
  return {std::string(family), count, std::move(reasons)};
}

Verdict judge(const GoldenCase& golden, const CaseList& not_yet,
              const CaseList& not_supported) {
  if (not_supported.contains(golden)) return skipped("not supported", {});
  const bool later = not_yet.contains(golden);
  const HandlerRow* handler = find_handler(golden.method);
  if (handler == nullptr) {
    if (later) return skipped("not yet", {"method not run yet"});
    return failed("unknown", {"unknown method '" + golden.method + "'"});
  }
  const Findings found = run_case(golden, *handler);
  if (!found.mismatches.empty()) return failed(handler->family, found.mismatches);
  if (found.unavailable.empty() && later)
    return failed(handler->family, {"passes: take it off the list not_yet"});
  if (found.unavailable.empty()) return passed(handler->family, found.comparisons);
  const std::string missing = "without " + found.unavailable.front();
  if (later) return skipped(handler->family, {missing}, found.comparisons);
  return failed(handler->family, {missing});
}

void print(const std::string& name, const Count& count) {
  std::printf("%-16s %4ld passed, %ld failed, %ld skipped (%ld comparisons)\n",
              name.c_str(), count.passed, count.failed, count.skipped,
              count.comparisons);
}

int run_all(const Arguments& arguments) {
  const CaseList not_yet(arguments.not_yet), not_supported(arguments.not_supported);
  const std::vector<GoldenCase> cases = find_cases(arguments.folder);
  std::map<std::string, Count> families;
  Count all;
  for (const GoldenCase& golden : cases) {
    const Verdict verdict = judge(golden, not_yet, not_supported);
    families[verdict.family] += verdict.count;
    all += verdict.count;
    for (const std::string& reason : verdict.reasons)
      std::printf("%s %s: %s\n", verdict.count.failed > 0 ? "FAILED " : "skipped",
                  golden.id.c_str(), reason.c_str());
  }
  for (const auto& [family, count] : families) print(family, count);
  std::printf("%ld passed, %ld failed, %ld skipped\n", all.passed, all.failed,
              all.skipped);
  if (cases.empty()) std::printf("no case found in %s\n", arguments.folder.c_str());
  return all.failed > 0 || cases.empty() ? 1 : 0;
}

bool read_arguments(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool list = word == "--not-yet" || word == "--not-supported";
    if (list && i + 1 == count) return false;
    if (word == "--not-yet") {
      arguments.not_yet = words[++i];
    } else if (word == "--not-supported") {
      arguments.not_supported = words[++i];
    } else if (arguments.folder.empty() && !word.starts_with('-')) {
      arguments.folder = word;
    } else {
      return false;
    }
  }
  return !arguments.folder.empty();
}

}  // namespace
}  // namespace lagwise::golden

int main(int argc, char** argv) {
  lagwise::golden::Arguments arguments;
  if (!lagwise::golden::read_arguments(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: %s DIR [--not-yet FILE] [--not-supported FILE]\n",
                 argv[0]);
    return 2;
  }
  try {
    return lagwise::golden::run_all(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
