#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lagwise::dist {

/// Who a process is among those it was started with, and where they meet.
struct World {
  int rank = 0, size = 1;
  std::string address;     ///< of rank 0, which keeps the store where ranks meet
  int port = 0;            ///< of the store
  std::string job;         ///< sets this job's keys in the store apart from others'
  std::string started_by;  ///< "torchrun", "SLURM", "Open MPI", "PMI"; empty: nobody

  bool alone() const { return size == 1; }
};

/// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

/// Reads who we are from what starters of processes set, the first of these that is
/// there: torchrun and `lagwise launch` (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT),
/// srun (SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_NODELIST), Open MPI
/// (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE), and PMI (PMI_RANK, PMI_SIZE). The last
/// two do not say where to meet: MASTER_ADDR does, and on one host needs not.
///
/// torchrun keeps a store of its own at MASTER_PORT and offers it for use
/// (TORCHELASTIC_USE_AGENT_STORE), but that of torch 2 does not answer clients of torch
/// 1.13, so ranks meet at the port after it.
///
/// None of them: alone. Some of a starter's variables without the others, a value that
/// is none, or two starters inside of which we cannot tell who is right, are a
/// std::invalid_argument that names the variables.
World read_world(const Environment& environment);

/// The first host of a SLURM node list: "gnode10" of "gnode[10,20-22],login1".
/// std::invalid_argument for a list with an open bracket.
std::string first_host(const std::string& nodes);

}  // namespace lagwise::dist
