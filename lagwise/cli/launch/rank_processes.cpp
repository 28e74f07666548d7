#include "lagwise/cli/launch/rank_processes.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "lagwise/cli/job.h"
#include "lagwise/cli/program.h"
#include "lagwise/cli/terminal/stop_signal.h"

namespace lagwise::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook(20);         // how often we look
constexpr milliseconds kMayStop(500);     // a process that is stopped longer is lost
constexpr milliseconds kMayNotice(2500);  // the others notice a loss within this time

Variables variables_of(const LaunchPlan& plan, int local) {
  return {fmt::format("RANK={}", plan.first + local),
          fmt::format("WORLD_SIZE={}", plan.size),
          fmt::format("LOCAL_RANK={}", local),
          fmt::format("LOCAL_WORLD_SIZE={}", plan.here),
          "MASTER_ADDR=" + plan.address,
          fmt::format("MASTER_PORT={}", plan.port),
          "LAGWISE_JOB=" + plan.job,
          fmt::format("LAGWISE_TIMEOUT={}", plan.timeout)};
}

/// Whether a process was ended by a signal, and did not save and end because of one.
bool was_killed(int code) { return code > 128 && code != kInterrupted; }

}  // namespace

RankProcesses::RankProcesses(const LaunchPlan& plan) {
  for (int local = 0; local < plan.here; ++local) {
    const int number = plan.first + local;
    const std::string log = number == 0 ? "" : rank_log(plan.run, number);
    if (!log.empty()) std::filesystem::remove(log);  // that of an earlier beginning
    ranks_.push_back(
        {number, log,
         std::make_unique<Child>(plan.words, log, variables_of(plan, local))});
  }
}

bool RankProcesses::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.code.has_value(); });
}

void RankProcesses::look_after(Rank& rank) {
  if (rank.code) return;
  const Time now = std::chrono::steady_clock::now();
  int code = 0;
  if (rank.child->ended(code)) {
    rank.code = code;
    if (code != kOk) note_failure(rank, now);
    return;
  }
  if (!rank.child->stopped())
    rank.stopped.reset();
  else if (!rank.stopped)
    rank.stopped = now;
  else if (now - *rank.stopped > kMayStop) {
    note_failure(rank, now);  // on a busy machine it takes a while to be gone
    rank.child->send(SIGKILL);
  }
}

void RankProcesses::note_failure(const Rank& rank, Time now) {
  if (failed_) return;
  failed_ = static_cast<int>(&rank - ranks_.data());
  failed_at_ = now;
}

void RankProcesses::hand_on_stop() {
  if (asked_to_stop_ || !StopSignal::asked()) return;
  asked_to_stop_ = true;
  for (const Rank& rank : ranks_)
    if (!rank.code) rank.child->send(SIGTERM);
}

/// Those who did not notice that one has failed.
void RankProcesses::end_the_rest() {
  if (!failed_ || ranks_[size_t(*failed_)].code == kInterrupted) return;
  if (std::chrono::steady_clock::now() - failed_at_ < kMayNotice) return;
  for (const Rank& rank : ranks_)
    if (!rank.code) rank.child->send(SIGKILL);
}

int RankProcesses::wait() {
  while (!all_ended()) {
    for (Rank& rank : ranks_) look_after(rank);
    hand_on_stop();
    end_the_rest();
    if (!all_ended()) std::this_thread::sleep_for(kLook);
  }
  if (!failed_) return kOk;
  const int code = ranks_[size_t(*failed_)].code.value();
  return was_killed(code) ? kPeerLost : code;
}

std::string RankProcesses::complaint() const {
  if (!failed_) return "";
  const Rank &first = ranks_[size_t(*failed_)], &speaker = ranks_[0];
  const int code = first.code.value(), speakers_code = speaker.code.value();
  const bool spoke = speaker.log.empty() && !was_killed(speakers_code);
  // What ends all, such as a wrong recipe or Ctrl-C, rank 0 has said, and who was lost.
  if (spoke && (speakers_code == code || was_killed(code))) return "";
  const auto said = [](const Rank& rank) {
    return rank.log.empty() ? "" : last_line(rank.log, "lagwise: ");
  };
  if (!was_killed(code) && code != kPeerLost && !first.log.empty())
    return fmt::format("rank {}: {}", first.number, said(first));
  for (const Rank& rank : ranks_)
    if (rank.code == kPeerLost && !said(rank).empty()) return said(rank);
  if (!was_killed(code)) return "";
  return fmt::format("rank {} was lost: it was ended by signal {}", first.number,
                     code - 128);
}

int free_port() {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  const bool found =
      bind(file, address, size) == 0 && getsockname(file, address, &size) == 0;
  close(file);
  if (!found) throw std::runtime_error("there is no free port on 127.0.0.1");
  return ntohs(place.sin_port);
}

}  // namespace lagwise::cli
