// Feature maps that act on each number alone.

#include <ATen/ATen.h>

#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

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
    run.compare_gradients((y * run.given("ct")).sum(), "grad_");
  }
}

const RegisterHandler row({"feature maps", "feature maps", pointwise});

}  // namespace
}  // namespace lagwise::golden
