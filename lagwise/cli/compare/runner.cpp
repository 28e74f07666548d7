#include "lagwise/cli/compare/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "lagwise/cli/program.h"
#include "lagwise/cli/terminal/stop_signal.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/study/compare/changes.h"
#include "lagwise/study/run_summary.h"
#include "lagwise/train/run_folder.h"

namespace lagwise::cli {
namespace fs = std::filesystem;
namespace {

constexpr auto kSilence = std::chrono::seconds(10);
constexpr int kAttempts = 2;  // where a failure may be an accident: a lock, a kill

std::string text_of_file(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

CompareRunner::CompareRunner(const CompareRequest& request,
                             const std::vector<GridCell>& cells, RunnerOptions options,
                             CompareLedger& ledger)
    : request_(request),
      cells_(cells),
      options_(std::move(options)),
      ledger_(ledger),
      counted_(std::chrono::steady_clock::now()) {
  for (const GridCell& cell : cells)
    for (int64_t seed = 0; seed < request.seeds; ++seed)
      states_[{cell.name, seed}] = found(cell, seed);
}

/// What was asked of an evaluation: another wish has it done again.
std::string CompareRunner::marker() const {
  return nlohmann::ordered_json({{"lengths", options_.lengths},
                                 {"windows", options_.windows},
                                 {"slide", "1/8"},
                                 {"examples", options_.examples},
                                 {"decoded", options_.decoded}})
             .dump(2) +
         "\n";
}

/// A run that diverged would diverge again; other failures get another chance, and so
/// does what was another run than the one that is asked for now.
CompareRunner::State CompareRunner::found(const GridCell& cell, int64_t seed) {
  const Job job{&cell, seed};
  const std::string folder = cell.folder(request_.out, seed);
  const bool begun = fs::exists(run_file(folder, "recipe.toml")) &&
                     changes_of(cell, request_, seed).empty();
  if (const auto* failure = ledger_.failure(key(job))) {
    if (begun && failure->code == kDiverged) return State::failed;
    ledger_.forget_failure(key(job));
  }
  if (!begun) return State::waiting;
  const RunSummary run = read_run_summary(folder, options_.examples);
  const bool judged =
      run.judged() && text_of_file(run_file(folder, "eval/compare.json")) == marker();
  const bool whole =
      run.finished() && run.step >= cell.recipe_for(request_, seed).train.steps;
  return judged && whole ? State::done : State::waiting;
}

CompareRunner::State CompareRunner::state(const GridCell& cell, int64_t seed) const {
  return states_.at({cell.name, seed});
}

const GridCell* CompareRunner::chosen(size_t group) const {
  std::vector<const GridCell*> all;
  for (const GridCell& cell : cells_)
    if (cell.group == group) all.push_back(&cell);
  if (all.size() == 1) return all[0];
  const GridCell* best = nullptr;
  double lowest = INFINITY;
  for (const GridCell* cell : all) {
    const State state = states_.at({cell->name, 0});
    if (state == State::waiting || state == State::running) return nullptr;
    if (state == State::failed) continue;
    const double loss = read_run_summary(cell->folder(request_.out, 0)).valid_loss;
    if (!best || loss < lowest) best = cell, lowest = loss;
  }
  return best;
}

int64_t CompareRunner::asked() const {
  int64_t runs = 0;
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (!cells_[i].not_served.empty()) continue;
    const bool first = i == 0 || cells_[i].group != cells_[i - 1].group;
    runs += first ? request_.seeds : 1;
  }
  return runs;
}

int64_t CompareRunner::done() const {
  return std::count_if(states_.begin(), states_.end(),
                       [](const auto& item) { return item.second == State::done; });
}

bool CompareRunner::next(Job& job) const {
  for (int64_t seed = 0; seed < request_.seeds; ++seed)
    for (const GridCell& cell : cells_) {
      if (!cell.not_served.empty() || state(cell, seed) != State::waiting) continue;
      if (seed > 0 && chosen(cell.group) != &cell) continue;
      job = {&cell, seed};
      return true;
    }
  return false;
}

std::string CompareRunner::key(const Job& job) const {
  return job.cell->name + "/seed-" + std::to_string(job.seed);
}

std::string CompareRunner::log_of(const Job& job) const {
  return (fs::path(request_.out) / (key(job) + ".log")).string();
}

/// A run that goes on keeps the threads it began with, whatever --jobs is now.
std::vector<std::string> CompareRunner::train_words(const GridCell& cell,
                                                    int64_t seed) const {
  const std::string begun = run_file(cell.folder(request_.out, seed), "recipe.toml");
  const bool anew = !changes_of(cell, request_, seed).empty();
  std::optional<int64_t> threads;
  if (!anew && fs::exists(begun)) {
    threads = read_recipe(begun).train.threads;
  } else if (options_.threads > 0) {
    threads = options_.threads;
  }
  std::vector<std::string> words = cell.train_words(request_, seed, threads);
  if (anew) words.emplace_back("--fresh");
  if (options_.processes > 1)
    words.insert(words.begin(), {"launch", "-n", std::to_string(options_.processes)});
  return words;
}

/// Starts the first stage that is not done yet, or the one that is next.
void CompareRunner::start(Job& job) {
  const std::string folder = job.cell->folder(request_.out, job.seed);
  std::vector<std::string> words;
  if (job.stage == Stage::train) {
    fs::create_directories(fs::path(folder).parent_path());
    std::error_code none;  // where it cannot be there, its run fails and says why
    fs::remove(run_file(folder, "eval/compare.json"), none);
    words = train_words(*job.cell, job.seed);
  } else if (job.stage == Stage::judge) {
    words = {"eval",           folder,      "--lengths",
             options_.lengths, "--windows", std::to_string(options_.windows)};
    if (options_.examples > 0)
      words.insert(words.end(), {"--examples", std::to_string(options_.examples)});
  } else {
    words = {"eval",
             folder,
             "--stream",
             "--chunk",
             "1",
             "--to",
             std::to_string(options_.decoded)};
  }
  job.child = std::make_unique<Child>(words, log_of(job));
  states_[{job.cell->name, job.seed}] = State::running;
}

bool CompareRunner::over(Job& job, State state) {
  states_[{job.cell->name, job.seed}] = state;
  if (state == State::done)
    options_.say(fmt::format("done   {} ({} of {})", key(job), done(), asked()));
  return false;
}

bool CompareRunner::complain(Job& job, int code) {
  if (StopSignal::asked()) return over(job, State::waiting);
  if (code != kDiverged && code != kUsage && job.attempts < kAttempts) {
    ++job.attempts;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    start(job);
    return true;
  }
  std::string message = last_line(log_of(job), "lagwise: ");
  if (message.empty()) message = "exit code " + std::to_string(code);
  ledger_.failed(key(job), {code, message});
  options_.say(fmt::format("failed {}: {}", key(job), message));
  return over(job, State::failed);
}

/// After a stage of a job may have ended.
bool CompareRunner::advance(Job& job) {
  int code = 0;
  if (!job.child->ended(code)) return true;
  if (code != kOk) return complain(job, code);
  const std::string folder = job.cell->folder(request_.out, job.seed);
  const Stage last = job.cell->decodes ? Stage::decode : Stage::judge;
  if (job.stage == last) {
    data::replace_file(run_file(folder, "eval/compare.json"), marker());
    return over(job, State::done);
  }
  if (StopSignal::asked()) return over(job, State::waiting);
  job.stage = job.stage == Stage::train ? Stage::judge : Stage::decode;
  start(job);
  return true;
}

double CompareRunner::spent() const {
  const std::chrono::duration<double> since =
      std::chrono::steady_clock::now() - counted_;
  return ledger_.spent() + since.count();
}

/// Time is written down while it passes, so that a kill does not give it back.
void CompareRunner::account(bool now) {
  const double seconds = spent() - ledger_.spent();
  if (!now && seconds < 5) return;
  ledger_.spend(seconds);
  counted_ = std::chrono::steady_clock::now();
}

/// How far the runs are, now and then: where one learns, the last line of its log.
void CompareRunner::tell() {
  const auto now = std::chrono::steady_clock::now();
  if (now - told_ < kSilence) return;
  told_ = now;
  for (const Job& job : running_) {
    const std::string line =
        job.stage == Stage::train ? last_line(log_of(job)) : "judging";
    if (!line.empty())
      options_.say(fmt::format("       {}: {}", job.cell->encoding, line));
  }
}

bool CompareRunner::may_start() const {
  return static_cast<int64_t>(running_.size()) < options_.jobs &&
         spent() < 60 * options_.minutes;
}

void CompareRunner::run() {
  const StopSignal listening;
  bool interrupted = false;
  counted_ = told_ = std::chrono::steady_clock::now();
  for (;;) {
    account(false);
    tell();
    std::erase_if(running_, [this](Job& job) { return !advance(job); });
    if (StopSignal::asked() && !interrupted) {
      interrupted = true;
      options_.say("stopping; the runs save first");
      for (const Job& job : running_) job.child->interrupt();
    }
    Job job{};
    while (!interrupted && may_start() && next(job)) {
      options_.say(
          fmt::format("start  {} ({} of {} done, {:.1f} of {:g} minutes spent)",
                      key(job), done(), asked(), spent() / 60, options_.minutes));
      start(job);
      running_.push_back(std::move(job));
    }
    if (running_.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  account(true);
  if (interrupted)
    throw Interrupted("stopped; the same command goes on from here: " + request_.out);
}

}  // namespace lagwise::cli
