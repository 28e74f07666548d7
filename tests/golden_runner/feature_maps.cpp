// Feature maps that act on each number alone.

#include <ATen/ATen.h>

#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

// The slope of elu(x) + 1 at exactly 0 is 1 from either side. What is stored there is
// a half: torch deals the gradient of a minimum out between two equal arguments.
at::Tensor half_at_zero(const at::Tensor& x) {
  return at::where(x.eq(0), at::full_like(x, 0.5), at::ones_like(x));
}

void pointwise(Run& run) {
  const std::string eps = exactly(run.golden.param<double>("relu_eps", 1e-3));
  const std::pair<std::string, std::string> maps[] = {
      {"elu1", "elu1"},
      {"relu", "relu:offset=0"},
      {"relu_eps", "relu:offset=" + eps},
      {"relu2", "relu_squared"},
      {"silu", "silu"},
      {"exp", "exp"},
  };
  for (const auto& [name, text] : maps) {
    if (!run.golden.has(name)) continue;
    run.forget_leaves();
    const at::Tensor x = run.given("x").set_requires_grad(true);
    run.adopt(name, x);  // the gradient is stored under the name of the map
    const at::Tensor y =
        feature_map(text)
            ->features(x.view({1, 1, 1, -1}), FeatureMap::Side::query, {}, {})
            .x.view(x.sizes());
    run.compare(name, y);
    const at::Tensor weight =
        name == "elu1" ? half_at_zero(x.detach()) : at::ones_like(x);
    run.compare_gradients((y * run.given("ct") * weight).sum(), "grad_");
  }
}

const RegisterHandler feature_maps_row({"feature maps", "feature maps", pointwise});

}  // namespace
}  // namespace lagwise::golden
