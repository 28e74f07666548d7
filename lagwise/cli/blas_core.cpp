#include "lagwise/cli/blas_core.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "lagwise/cli/machine.h"

namespace lagwise::cli {
namespace {

constexpr const char *kCoreType = "OPENBLAS_CORETYPE",
                     *kRestarted = "LAGWISE_BLAS_CORE";

/// What kernels are written for.
enum Level { kNoLevel = -1, kSse = 0, kAvx = 1, kAvx2 = 2, kAvx512 = 3 };

struct Core {
  std::string_view name;
  Level level;
};

// Those of OpenBLAS for x86. It has no name for a core it does not know but that of the
// oldest with the same word size.
constexpr std::array kCores = {
    Core{"Katmai", kSse},        Core{"Coppermine", kSse},
    Core{"Northwood", kSse},     Core{"Prescott", kSse},
    Core{"Banias", kSse},        Core{"Atom", kSse},
    Core{"Core2", kSse},         Core{"Penryn", kSse},
    Core{"Dunnington", kSse},    Core{"Nehalem", kSse},
    Core{"Athlon", kSse},        Core{"Opteron", kSse},
    Core{"Opteron_SSE3", kSse},  Core{"Barcelona", kSse},
    Core{"Bobcat", kSse},        Core{"Nano", kSse},
    Core{"Sandybridge", kAvx},   Core{"Bulldozer", kAvx},
    Core{"Piledriver", kAvx},    Core{"Steamroller", kAvx},
    Core{"Excavator", kAvx2},    Core{"Haswell", kAvx2},
    Core{"Zen", kAvx2},          Core{"SkylakeX", kAvx512},
    Core{"Cooperlake", kAvx512}, Core{"SapphireRapids", kAvx512}};

Level level_of(std::string_view name) {
  for (const Core& core : kCores)
    if (core.name == name) return core.level;
  return kNoLevel;
}

bool has_all(const CpuKind& cpu, std::initializer_list<const char*> features) {
  return std::ranges::all_of(features, [&](const char* feature) {
    return std::ranges::find(cpu.features, feature) != cpu.features.end();
  });
}

}  // namespace

CpuKind this_cpu() { return {cpu_vendor(), cpu_features()}; }

std::string blas_core() {
  using Name = char* (*)();
  const auto name =
      reinterpret_cast<Name>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name ? name() : "";
}

std::string better_core(const std::string& core, const CpuKind& cpu) {
  const Level level = level_of(core);
  if (level == kNoLevel || !has_all(cpu, {"avx2", "fma"})) return "";
  // AMD's AVX-512 gains little over kernels of 256 bits, and those are tuned for it.
  const bool amd = cpu.vendor == "AuthenticAMD";
  if (!amd && has_all(cpu, {"avx512f", "avx512dq", "avx512bw", "avx512vl"}))
    return level < kAvx512 ? "SkylakeX" : "";
  if (level >= kAvx2) return "";
  return amd ? "Zen" : "Haswell";
}

std::string blas_warning(const std::string& core, const CpuKind& cpu) {
  const std::string better = better_core(core, cpu);
  if (better.empty()) return "";
  return "OpenBLAS takes this CPU for a " + core +
         ", whose matrix products are far slower than it can do: set " + kCoreType +
         "=" + better;
}

void restart_with_better_core(const std::string& core, const CpuKind& cpu,
                              char* const* words) {
  if (std::getenv(kCoreType) || std::getenv(kRestarted)) return;
  const std::string better = better_core(core, cpu);
  if (better.empty()) return;
  // By its own name, so that lists of processes show that and not "exe".
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return;
  setenv(kCoreType, better.c_str(), 1);
  setenv(kRestarted, better.c_str(), 1);
  execv(program.c_str(), words);
  unsetenv(kCoreType);  // it could not be started: slower will do
  unsetenv(kRestarted);
}

}  // namespace lagwise::cli
