#include "lagwise/study/versions.h"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <torch/csrc/api/include/torch/version.h>

#include "lagwise/core/version.h"

namespace lagwise {

std::string lagwise_version() {
  return fmt::format("{}.{}.{}", LAGWISE_VERSION_MAJOR, LAGWISE_VERSION_MINOR,
                     LAGWISE_VERSION_PATCH);
}

std::string compiler_version() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__,
                     __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string torch_version() { return TORCH_VERSION; }

std::string highway_version() {
  return fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH);
}

std::string version_line() {
  return fmt::format("lagwise {} (torch {}, Highway {})", lagwise_version(),
                     torch_version(), highway_version());
}

}  // namespace lagwise
