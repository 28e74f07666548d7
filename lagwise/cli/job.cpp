#include "lagwise/cli/job.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "lagwise/dist/world.h"

namespace lagwise::cli {
namespace {

constexpr double kUsualTimeout = 60;
constexpr double kPatience = 10;  // steps

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

double timeout_of(double asked) {
  const char* const text = std::getenv("LAGWISE_TIMEOUT");
  if (asked > 0 || text == nullptr) return asked > 0 ? asked : kUsualTimeout;
  double seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, seconds);
  if (error != std::errc() || stopped != end || !(seconds > 0))
    throw std::invalid_argument(
        "LAGWISE_TIMEOUT: expected a number of seconds above 0, got '" +
        std::string(text) + "'");
  return seconds;
}

}  // namespace

Job::Job(double timeout) {
  const dist::World world = dist::read_world(dist::process_environment());
  if (!world.alone()) peers_ = dist::meet(world, in_milliseconds(timeout_of(timeout)));
}

void Job::join(const Recipe& recipe, TrainerOptions& options) {
  if (!peers_) return;
  options.peers = peers_.get();
  options.hosts = peers_->hosts();
  options.ranks_here = peers_->ranks_on_this_host();
  const auto width = static_cast<int>(recipe.train.sequence_ranks);
  if (width == 1 || peers_->size() % width != 0) return;  // the trainer refuses it
  std::vector<int> members;
  const int first = peers_->rank() / width * width;
  for (int rank = first; rank < first + width; ++rank) members.push_back(rank);
  columns_ = peers_->group(members);
  options.columns = columns_.get();
}

void Job::step_took(double seconds) const {
  if (peers_) peers_->wait_at_least(in_milliseconds(kPatience * seconds));
}

std::string rank_log(const std::string& run, int rank) {
  const std::filesystem::path folder = std::filesystem::path(run) / "ranks";
  std::filesystem::create_directories(folder);
  return (folder / (std::to_string(rank) + ".log")).string();
}

}  // namespace lagwise::cli
