#include "lagwise/dist/world.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace lagwise::dist {
namespace {

constexpr int kFirstPort = 29500;  // what torchrun takes, too
constexpr int kPorts = 1000;       // among which jobs choose by their number
constexpr int kLastPort = 65535;
constexpr int kMostRanks = 1 << 20;

/// Who says which rank we are, by which variables.
struct Starter {
  const char* name;
  const char* rank;
  const char* size;
};

constexpr Starter kTorchrun{"torchrun", "RANK", "WORLD_SIZE"};
constexpr Starter kOthers[] = {
    {"SLURM", "SLURM_PROCID", "SLURM_NTASKS"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE"}};

int number(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < least || value > most)
    throw std::invalid_argument(name + ": expected a whole number from " +
                                std::to_string(least) + " to " + std::to_string(most) +
                                ", got '" + text + "'");
  return value;
}

/// The value of a variable that says something: scripts set what they do not know to "".
std::optional<std::string> said(const Environment& environment,
                                const std::string& name) {
  const auto value = environment(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::string needed(const Environment& environment, const std::string& name,
                   const std::string& because) {
  const auto value = said(environment, name);
  if (!value)
    throw std::invalid_argument(name + ": expected a value, since " + because +
                                " is set, got none");
  return *value;
}

void read_rank(const Environment& environment, const Starter& starter, World& world) {
  const std::string rank = needed(environment, starter.rank, starter.size),
                    size = needed(environment, starter.size, starter.rank);
  world.size = number(starter.size, size, 1, kMostRanks);
  world.rank = number(starter.rank, rank, 0, world.size - 1);
  world.started_by = starter.name;
}

/// Where to meet, for starters that do not say so.
void read_meeting_place(const Environment& environment, const std::string& address,
                        const std::string& job_number, World& world) {
  world.address = said(environment, "MASTER_ADDR").value_or(address);
  int offset = 0;
  for (const char c : job_number)
    offset = (offset * 10 + (c >= '0' && c <= '9' ? c - '0' : 0)) % kPorts;
  const auto port = said(environment, "MASTER_PORT");
  world.port = port ? number("MASTER_PORT", *port, 1, kLastPort) : kFirstPort + offset;
  world.job = job_number;
}

World from_torchrun(const Environment& environment) {
  World world;
  read_rank(environment, kTorchrun, world);
  world.address = needed(environment, "MASTER_ADDR", "RANK");
  world.port =
      number("MASTER_PORT", needed(environment, "MASTER_PORT", "RANK"), 1, kLastPort);
  const auto launched = environment("LAGWISE_JOB");  // by `lagwise launch`
  if (!launched && environment("TORCHELASTIC_USE_AGENT_STORE") == "True")
    world.port += world.port < kLastPort ? 1 : -1;
  world.job = launched.value_or(environment("TORCHELASTIC_RUN_ID").value_or("")) + "/" +
              environment("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return world;
}

World from_slurm(const Environment& environment) {
  World world;
  read_rank(environment, kOthers[0], world);
  const auto step = said(environment, "SLURM_STEP_NODELIST");
  const std::string nodes =
      step ? *step : needed(environment, "SLURM_JOB_NODELIST", "SLURM_PROCID");
  read_meeting_place(environment, first_host(nodes),
                     environment("SLURM_JOB_ID").value_or("0"), world);
  return world;
}

World from_mpi(const Environment& environment, const Starter& starter) {
  World world;
  read_rank(environment, starter, world);
  const auto here = environment("OMPI_COMM_WORLD_LOCAL_SIZE");
  const bool one_host = here && *here == std::to_string(world.size);
  if (world.size > 1 && !one_host && !said(environment, "MASTER_ADDR"))
    throw std::invalid_argument(
        std::string("MASTER_ADDR: expected the host of rank 0, which ") + starter.name +
        " does not tell, got none");
  read_meeting_place(environment, "127.0.0.1", "0", world);
  return world;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

World read_world(const Environment& environment) {
  // Inside of srun or mpirun torchrun may start processes of its own: the innermost
  // starter is right, and torchrun is the only one that is used so.
  if (environment("RANK") || environment("WORLD_SIZE"))
    return from_torchrun(environment);
  std::vector<const Starter*> found;
  for (const Starter& starter : kOthers)
    if (environment(starter.rank)) found.push_back(&starter);
  if (found.empty()) return {};
  for (const Starter* other : found)
    if (environment(other->rank) != environment(found[0]->rank) ||
        environment(other->size) != environment(found[0]->size))
      throw std::invalid_argument(
          std::string(found[0]->rank) + " of " + found[0]->name + " and " +
          other->rank + " of " + other->name +
          ": expected the same rank and size, got others: unset the variables of the "
          "one that did not start this process");
  return found[0] == &kOthers[0] ? from_slurm(environment)
                                 : from_mpi(environment, *found[0]);
}

std::string first_host(const std::string& nodes) {
  std::string host;
  for (size_t i = 0; i < nodes.size() && nodes[i] != ','; ++i) {
    if (nodes[i] != '[') {
      host += nodes[i];
      continue;
    }
    const size_t end = nodes.find(']', i);
    const size_t first = nodes.find_first_of(",-]", i);
    if (end == nodes.npos)
      throw std::invalid_argument(
          "SLURM_JOB_NODELIST: expected a list such as "
          "gnode[10,20-22], got '" +
          nodes + "'");
    host += nodes.substr(i + 1, first - i - 1);
    i = end;
  }
  if (host.empty())
    throw std::invalid_argument("SLURM_JOB_NODELIST: expected a host, got '" + nodes +
                                "'");
  return host;
}

}  // namespace lagwise::dist
