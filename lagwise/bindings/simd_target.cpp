// The instruction set that the kernels chose on this machine, for reports of measurements.

#include <hwy/targets.h>
#include <torch/library.h>

#include <string>

namespace lagwise::bindings {
namespace {

/// The best one is the lowest bit.
std::string simd_target() {
  const int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lagwise_bindings, m) {
  m.def("simd_target() -> str", simd_target);
}

}  // namespace lagwise::bindings
