#include "lagwise/cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "lagwise/cli/failure.h"
#include "lagwise/core/nearest.h"
#include "lagwise/study/versions.h"

namespace lagwise::cli {
namespace {

constexpr const char* kExitCodes = R"(Exit codes:
  0    done
  1    failed for another reason than those below
  2    the command line or an option is wrong
  3    a file has wrong contents or a wrong format
  4    training diverged
  5    a process of the job was lost
  130  interrupted, after saving)";

bool is_option(const std::string& word) { return word.starts_with('-'); }

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "bench, doctor (see lagwise --help)"
std::string legal_verbs(const CLI::App& app, const std::string& path) {
  return fmt::format("{} (see {} --help)", fmt::join(verb_names(app), ", "), path);
}

// "--json" of "--json=1"
std::string option_part(const std::string& word) {
  return word.substr(0, word.find('='));
}

// An option of a verb may take the next word as its value, which then is no verb.
[[noreturn]] void refuse_verb(const CLI::App& app, const std::string& path,
                              const std::string& word, const std::string& previous) {
  const std::vector<std::string> names = verb_names(app);
  if (is_option(previous) && !contains(option_names(app), option_part(previous)))
    throw std::invalid_argument(
        fmt::format("'{}' is no option of {}; those of a verb belong after it: {}",
                    previous, path, legal_verbs(app, path)));
  const char* const nor = contains(names, "look") ? ", and no file is there" : "";
  std::string meant = nearest(word, names);
  if (!meant.empty()) meant = fmt::format("did you mean '{}'? ", meant);
  throw std::invalid_argument(
      fmt::format("'{}' is no verb of {}{}; {}{}: {}", word, path, nor, meant,
                  meant.empty() ? "its verbs" : "Its verbs", legal_verbs(app, path)));
}

// Checks the leading words against the verbs, and theirs: `bench`, `bench linear`.
// CLI11 would only say that some argument "was not expected".
void check_verbs(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  std::string path = "lagwise", previous;
  for (const std::string& word : words) {
    const std::vector<std::string> names = verb_names(*app);
    if (names.empty() || (is_option(word) && app != &program)) return;
    if (!is_option(word)) {  // those of the program take no values
      if (!contains(names, word)) refuse_verb(*app, path, word, previous);
      path += " " + word;
      app = app->get_subcommand(word);
    }
    previous = word;
  }
}

/// The verb that was asked for, as far as CLI11 came.
struct Asked {
  const CLI::App* app;
  std::string path;                  ///< "lagwise bench linear"
  std::vector<std::string> options;  ///< its own and those above it, "--json"
};

Asked asked_for(const CLI::App& program) {
  Asked asked{&program, "lagwise", option_names(program)};
  while (!asked.app->get_subcommands().empty()) {
    asked.app = asked.app->get_subcommands().front();
    asked.path += " " + asked.app->get_name();
    for (const std::string& name : option_names(*asked.app))
      asked.options.push_back(name);
  }
  return asked;
}

// Dashes are not compared: they would make any two short options look alike.
std::string nearest_option(const std::string& word,
                           const std::vector<std::string>& options) {
  std::vector<std::string> bare;
  bare.reserve(options.size());
  for (const std::string& option : options) bare.push_back(option.substr(2));
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  const std::string found = nearest(word.substr(dashes), bare);
  return found.empty() ? "" : "; did you mean '--" + found + "'?";
}

[[noreturn]] void refuse_extras(const CLI::App& program) {
  const std::vector<std::string> extras = program.remaining(true);
  const std::string first = extras.empty() ? "" : extras.front();
  const std::string option = option_part(first);
  const Asked asked = asked_for(program);
  // CLI11 refuses an option of this verb only where the verb has not been read yet.
  const std::string hint = contains(asked.options, option)
                               ? fmt::format("; it belongs after '{}'", asked.path)
                               : nearest_option(option, asked.options);
  throw std::invalid_argument(
      fmt::format("unexpected '{}'{} (see {} --help)", first, hint, asked.path));
}

// CLI11 says "A subcommand is required", of whatever program.
[[noreturn]] void ask_for_verb(const CLI::App& program) {
  const Asked asked = asked_for(program);
  throw std::invalid_argument(fmt::format("{} needs a verb: {}", asked.path,
                                          legal_verbs(*asked.app, asked.path)));
}

// CLI11 says "--threads: 1 required INT missing". Returns if it said another thing.
void refuse_count(const CLI::App& program, const CLI::ArgumentMismatch& error) {
  const std::string said = error.what();
  const Asked asked = asked_for(program);
  for (const CLI::Option* option : asked.app->get_options()) {
    using Mismatch = CLI::ArgumentMismatch;
    const std::string name = option->get_name();
    const Mismatch missing = Mismatch::TypedAtLeast(name, 1, option->get_type_name());
    const Mismatch repeated = Mismatch::AtMost(name, 1, option->results().size());
    const bool needs = said == missing.what();
    if (!needs && said != repeated.what()) continue;
    throw std::invalid_argument(
        fmt::format("{} {} (see {} --help)", name,
                    needs ? "needs a value" : "was given more than once", asked.path));
  }
}

// A flag that every verb takes goes behind it, so that a verb which hands its words on to
// another program hands it on too.
void take_last(std::vector<std::string>& words, const std::string& flag) {
  if (std::erase(words, flag) > 0) words.push_back(flag);
}

// Also where a verb has words of its own there, which replaced the inherited ones.
void end_with_exit_codes(CLI::App& app) {
  const std::string said = app.get_footer();
  if (!said.ends_with(kExitCodes)) app.footer(said + "\n\n" + kExitCodes);
  for (CLI::App* verb : app.get_subcommands(nullptr)) end_with_exit_codes(*verb);
}

// "help bench linear" is "bench linear --help".
void take_help(std::vector<std::string>& words) {
  if (words.empty() || words.front() != "help") return;
  words.erase(words.begin());
  words.emplace_back("--help");
}

// "data songs" is "data look songs": of a verb that can look, a word that is none of
// its own but names what is there.
void take_look(const CLI::App& program, std::vector<std::string>& words) {
  const auto verb = std::find_if_not(words.begin(), words.end(), is_option);
  if (verb == words.end() || !contains(verb_names(program), *verb)) return;
  const std::vector<std::string> below = verb_names(*program.get_subcommand(*verb));
  const auto path = verb + 1;
  if (path == words.end() || !contains(below, "look") || contains(below, *path)) return;
  std::error_code failed;
  if (std::filesystem::exists(*path, failed)) words.insert(path, "look");
}

void run(CLI::App& program, const std::vector<AddVerb>& verbs,
         std::vector<std::string> words) {
  program.set_version_flag("--version", version_line(), "Print the version and exit");
  const std::string trace = "Print more than one line on failure";
  program.add_flag("--trace", trace);
  const std::string parse_only = "Check the command line and do nothing";
  program.add_flag(kParseOnly, parse_only);
  program.footer(kExitCodes);
  program.require_subcommand(1);
  program.fallthrough();  // verbs inherit it: --trace may stand behind them
  for (AddVerb add : verbs) add(program);
  end_with_exit_codes(program);
  // Called when all words are read, before any verb does what it does. One that hands its
  // words on does so all the same: to a program that reads them in its turn.
  if (contains(words, kParseOnly))
    program.parse_complete_callback([&program] {
      if (!asked_for(program).app->get_prefix_command()) throw EndWith{kOk};
    });

  take_help(words);
  take_last(words, kParseOnly);
  take_look(program, words);
  check_verbs(program, words);
  std::reverse(words.begin(), words.end());  // the order CLI11 wants
  try {
    program.parse(words);
  } catch (const CLI::ExtrasError&) {
    refuse_extras(program);
  } catch (const CLI::ArgumentMismatch& error) {
    refuse_count(program, error);
    throw;
  } catch (const CLI::RequiredError& error) {
    if (program.remaining_size(true) > 0) refuse_extras(program);
    const CLI::RequiredError verb_missing = CLI::RequiredError::Subcommand(1);
    if (std::string(error.what()) == verb_missing.what()) ask_for_verb(program);
    throw;
  }
}

/// What was printed and could not be written, a disk being full, is a failure too:
/// whoever reads the output would take it for whole.
int flushed(int code) {
  if (std::cout && std::ferror(stdout) == 0) errno = 0;  // else it tells of the failure
  std::cout.flush();
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout;
  if (whole || code != kOk) return code;
  const std::string reason = errno != 0 ? std::strerror(errno) : "a write failed";
  std::cerr << "lagwise: cannot write the output: " << reason << '\n' << std::flush;
  return kOther;
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
  } catch (const EndWith& end) {
    code = end.code;
  } catch (...) {
    code = report_failure(std::current_exception(), trace, std::cerr);
  }
  return flushed(code);
}

}  // namespace lagwise::cli
