#include "lagwise/cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "lagwise/cli/failure.h"
#include "lagwise/cli/versions.h"
#include "lagwise/core/nearest.h"

namespace lagwise::cli {
namespace {

constexpr const char* kExitCodes = R"(Exit codes:
  0    done
  1    failed for another reason than those below
  2    the command line or an option is wrong
  3    a file has wrong contents or a wrong format
  4    training diverged
  130  interrupted, after saving)";

bool is_option(const std::string& word) { return word.starts_with('-'); }

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr))
    names.push_back(verb->get_name());
  return names;
}

// Checks the leading words against the verbs, and theirs: `bench`, `bench linear`.
// CLI11 would only say that some argument "was not expected".
void check_verbs(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  std::string path = "lagwise";
  for (const std::string& word : words) {
    if (is_option(word) && app == &program) continue;  // those take no values
    const std::vector<std::string> names = verb_names(*app);
    if (is_option(word) || names.empty()) return;
    if (std::find(names.begin(), names.end(), word) == names.end())
      throw std::invalid_argument(fmt::format("'{}' is no verb of {}{} (see {} --help)",
                                              word, path, did_you_mean(word, names),
                                              path));
    path += " " + word;
    app = app->get_subcommand(word);
  }
}

// The options of the verb that was asked for, and of what stands above it.
std::vector<std::string> option_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* app = &program; app != nullptr;) {
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    const std::vector<CLI::App*> next = app->get_subcommands();
    app = next.empty() ? nullptr : next.front();
  }
  return names;
}

[[noreturn]] void refuse_extras(const CLI::App& program) {
  const std::vector<std::string> extras = program.remaining(true);
  const std::string first = extras.empty() ? "" : extras.front();
  const std::string option = first.substr(0, first.find('='));
  throw std::invalid_argument(fmt::format("unexpected '{}'{}", first,
                                          did_you_mean(option, option_names(program))));
}

// CLI11 says "A subcommand is required", of whatever program.
[[noreturn]] void ask_for_verb(const CLI::App& program) {
  const CLI::App* app = &program;
  std::string path = "lagwise";
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    path += " " + app->get_name();
  }
  throw std::invalid_argument(fmt::format("{} needs a verb: {} (see {} --help)", path,
                                          fmt::join(verb_names(*app), ", "), path));
}

void run(CLI::App& program, const std::vector<AddVerb>& verbs,
         std::vector<std::string> words) {
  program.set_version_flag("--version", version_line());
  const std::string trace = "on failure, say more than one line";
  program.add_flag("--trace", trace);
  program.footer(kExitCodes);
  program.require_subcommand(1);
  program.fallthrough();  // verbs inherit it: --trace may stand behind them
  for (AddVerb add : verbs) add(program);

  check_verbs(program, words);
  std::reverse(words.begin(), words.end());  // the order CLI11 wants
  try {
    program.parse(words);
  } catch (const CLI::ExtrasError&) {
    refuse_extras(program);
  } catch (const CLI::RequiredError& error) {
    if (program.remaining_size(true) > 0) refuse_extras(program);
    const CLI::RequiredError verb_missing = CLI::RequiredError::Subcommand(1);
    if (std::string(error.what()) == verb_missing.what()) ask_for_verb(program);
    throw;
  }
}

}  // namespace

int run_program(const std::vector<AddVerb>& verbs, std::vector<std::string> words) {
  const bool trace = std::find(words.begin(), words.end(), "--trace") != words.end();
  CLI::App program("Linear-time attention with positional encodings, on CPUs",
                   "lagwise");
  int code = kOk;
  try {
    run(program, verbs, std::move(words));
  } catch (const CLI::Success& asked) {  // --help and --version
    code = program.exit(asked);
  } catch (...) {
    code = report_failure(std::current_exception(), trace, std::cerr);
  }
  std::cout.flush();
  std::fflush(stdout);
  return code;
}

}  // namespace lagwise::cli
