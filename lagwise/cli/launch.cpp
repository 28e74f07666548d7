// `lagwise launch`: several processes that do one thing together, on one host or many.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/launch/rank_processes.h"
#include "lagwise/cli/program.h"
#include "lagwise/cli/terminal/stop_signal.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/dist/gloo_peers.h"
#include "lagwise/train/run_folder.h"

namespace lagwise::cli {
namespace {

constexpr int kUsualPort = 29500;

struct LaunchFlags {
  int here = 1, restarts = 0, host = -1, port = 0;
  double timeout = 60;
  std::vector<std::string> hosts;
  std::vector<std::string> words;  // the verb and what it takes
};

/// The folder that `lagwise train` will use for these words.
std::string run_of(const std::vector<std::string>& words) {
  std::string recipe;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--out" && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with("--out=")) return words[i].substr(6);
    if (words[i] == "--set" || words[i] == "--timeout")
      ++i;
    else if (!words[i].starts_with('-') && recipe.empty())
      recipe = words[i];
  }
  if (recipe.empty())
    throw std::invalid_argument(
        "lagwise launch train needs a recipe, such as recipes/listops.toml");
  return default_run_folder(recipe);
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain = word.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789_-+=:,./@%") == word.npos;
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    line += " " + (plain && !word.empty() ? word : "'" + quoted + "'");
  }
  return line;
}

/// One command for each host, to be given there.
void print_commands(const LaunchFlags& flags) {
  for (size_t i = 0; i < flags.hosts.size(); ++i) {
    std::string options;
    if (flags.restarts > 0) options += fmt::format(" --restarts {}", flags.restarts);
    if (flags.timeout != LaunchFlags().timeout)
      options += fmt::format(" --timeout {}", flags.timeout);
    fmt::print("# on {}\nlagwise launch -n {} --hosts {} --host {} --port {}{}{}\n",
               flags.hosts[i], flags.here, fmt::join(flags.hosts, ","), i,
               flags.port > 0 ? flags.port : kUsualPort, options, joined(flags.words));
  }
}

LaunchPlan plan_of(const LaunchFlags& flags, int attempt) {
  LaunchPlan plan;
  plan.words = flags.words, plan.here = flags.here, plan.timeout = flags.timeout;
  plan.run = run_of(flags.words);
  if (flags.hosts.empty()) {
    plan.size = flags.here;
    plan.port = flags.port > 0 ? flags.port : free_port();
    plan.job = fmt::format("{}-{}", getpid(), attempt);
    return plan;
  }
  plan.first = flags.host * flags.here;
  plan.size = flags.here * static_cast<int>(flags.hosts.size());
  plan.address = flags.hosts.front();
  plan.port = flags.port > 0 ? flags.port : kUsualPort;
  plan.job = fmt::format("launch-{}", attempt);
  return plan;
}

/// Ends as a single process with these words does.
[[noreturn]] void hand_on(const std::vector<std::string>& words) {
  Child child(words, "");
  const StopSignal listening;
  bool handed_on = false;
  int code = 0;
  while (!child.ended(code)) {
    if (StopSignal::asked() && !handed_on) child.interrupt(), handed_on = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw EndWith{code};
}

/// A comparison starts processes of its own, one run after another.
void launch_compare(const LaunchFlags& flags) {
  const std::pair<const char*, bool> of_train[] = {
      {"--hosts", !flags.hosts.empty()},
      {"--restarts", flags.restarts != LaunchFlags().restarts},
      {"--timeout", flags.timeout != LaunchFlags().timeout},
      {"--port", flags.port != LaunchFlags().port}};
  for (const auto& [name, given] : of_train)
    if (given)
      throw std::invalid_argument(std::string(name) +
                                  ": expected the verb train, got compare");
  std::vector<std::string> words = flags.words;
  words.insert(words.end(), {"--processes", std::to_string(flags.here)});
  hand_on(words);
}

void check(const LaunchFlags& flags) {
  const std::string verb = flags.words.empty() ? "" : flags.words.front();
  if (verb != "train" && verb != "compare")
    throw std::invalid_argument("lagwise launch: expected the verb train or compare, " +
                                (verb.empty() ? "got none" : "got '" + verb + "'"));
  if (flags.host >= static_cast<int>(flags.hosts.size()))
    throw std::invalid_argument(
        fmt::format("--host: expected a place in --hosts, 0 to {}, got {}",
                    static_cast<int>(flags.hosts.size()) - 1, flags.host));
  if (!dist::has_gloo())
    throw std::runtime_error(
        "this build has no Gloo, so it cannot start several processes: build it with "
        "Debian's libtorch-dev and libgloo-dev");
}

void run_launch(const LaunchFlags& flags) {
  check(flags);
  // Ranks would make the folder of their run before they read the words.
  if (std::ranges::find(flags.words, kParseOnly) != flags.words.end())
    hand_on(flags.words);
  if (flags.words.front() == "compare") return launch_compare(flags);
  if (!flags.hosts.empty() && flags.host < 0) return print_commands(flags);
  const StopSignal listening;
  for (int attempt = 0;; ++attempt) {
    RankProcesses processes(plan_of(flags, attempt));
    const int code = processes.wait();
    if (const std::string line = processes.complaint(); !line.empty())
      fmt::print(stderr, "lagwise: {}\n", line);
    if (code == kOk) return;
    if (code != kPeerLost || attempt == flags.restarts || StopSignal::asked())
      throw EndWith{code};
    fmt::print(stderr, "lagwise: beginning again, {} of {}\n", attempt + 1,
               flags.restarts);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // other hosts notice, too
  }
}

void add_launch(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "launch", "Train with several processes: lagwise launch -n 2 train R.toml");
  verb->fallthrough(false);
  verb->prefix_command();  // what follows is the command of each process
  const auto flags = std::make_shared<LaunchFlags>();
  verb->add_option("-n", flags->here, "Processes on each host")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  verb->add_option("--restarts", flags->restarts,
                   "Begin again so many times when a process is lost")
      ->check(whole_number(0, 1000000))
      ->capture_default_str();
  verb->add_option("--timeout", flags->timeout,
                   "Seconds of silence after which a process counts as lost")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--hosts", flags->hosts,
                   "Several hosts, such as a,b: prints the command for each")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--host", flags->host, "Which of --hosts this one is, from 0")
      ->check(whole_number(0, 1000000));
  verb->add_option("--port", flags->port, "On which rank 0 is found by the others")
      ->check(whole_number(1, 65535));
  verb->callback([verb, flags] {
    flags->words = verb->remaining();
    run_launch(*flags);
  });
}

const RegisterVerb launch_registered({.name = "launch", .place = 3, .add = add_launch});

}  // namespace
}  // namespace lagwise::cli
