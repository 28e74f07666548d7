#pragma once

#include <string>
#include <vector>

namespace lagwise::cli {

// OpenBLAS chooses its kernels by the CPU's model number, and for one it does not know
// those of an old CPU: products then take up to five times as long. It takes a core's
// name from OPENBLAS_CORETYPE, but only while it is loaded.

/// A CPU as Linux describes it.
struct CpuKind {
  std::string vendor;                 ///< "GenuineIntel"
  std::vector<std::string> features;  ///< "avx2", "avx512f", ..
};
CpuKind this_cpu();

/// The core whose kernels OpenBLAS runs, "Haswell"; empty where torch was loaded with
/// another BLAS.
std::string blas_core();

/// The core OpenBLAS should take a CPU for; empty where `core` makes use of what the
/// CPU has, or is none we know.
std::string better_core(const std::string& core, const CpuKind& cpu);

/// "OpenBLAS takes this CPU for a Prescott ..: set OPENBLAS_CORETYPE=SkylakeX"; empty
/// where the core fits.
std::string blas_warning(const std::string& core, const CpuKind& cpu);

/// Starts the program anew with OPENBLAS_CORETYPE set, where a better core is known:
/// the same process, words and signals. Returns where there is nothing to gain, where
/// the user has set the variable, and in the program started anew, which knows itself
/// by LAGWISE_BLAS_CORE.
void restart_with_better_core(const std::string& core, const CpuKind& cpu,
                              char* const* words);

}  // namespace lagwise::cli
