// Linear attention on given features: plain, with a decay per head, and normalised.

#include <ATen/ATen.h>

#include <cmath>

#include "lagwise/ops/linear_attention.h"
#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

// A causal case and a full one store the same names and parameters. They differ in
// row 0, which sees key 0 alone when causal: out_0 = w v_0 / (w + eps).
bool looks_causal(const Run& run, double eps) {
  if (run.golden.params.contains("causal")) return run.golden.param<bool>("causal");
  const auto phi = [](const at::Tensor& x) {
    return at::where(x.gt(0), x + 1, x.clamp_max(0).exp());
  };
  const at::Tensor q = run.golden.load("q").select(-2, 0);
  const at::Tensor k = run.golden.load("k").select(-2, 0);
  const at::Tensor v = run.golden.load("value").select(-2, 0);
  const at::Tensor w = (phi(q) * phi(k)).sum(-1, true);
  return at::allclose(run.golden.load("out").select(-2, 0), w * v / (w + eps), 1e-6,
                      1e-8);
}

void normalised(Run& run) {
  ops::LinearOptions options;
  options.feature_map = run.golden.param<std::string>("feature_map", "elu1");
  options.eps = run.golden.param<double>("eps");
  options.causal = looks_causal(run, options.eps);
  const auto [out, state] =
      ops::linear_attention_stateful(batched(run.leaf("q")), batched(run.leaf("k")),
                                     batched(run.leaf("value")), {}, options);
  run.compare("out", out);
  run.compare_if_stored("state_kv", state.s);
  run.compare_if_stored("state_z", state.z);
  run.compare_gradients({{"out", out}});
}

// o_i = sum_{j <= i} g_h^(i-j) (q_i . k_j) v_j scale, with no denominator.
ops::LinearResult decayed(Run& run, const at::Tensor& factor, double scale) {
  ops::LinearOptions options;
  options.causal = true;
  options.denominator = "none";
  options.decay = factor.log();
  return ops::linear_attention_stateful(batched(run.leaf("q") * scale),
                                        batched(run.leaf("k")),
                                        batched(run.leaf("value")), {}, options);
}

// The same factors from our own formula.
at::Tensor factor(const Run& run, const std::string& kind, int64_t layer,
                  int64_t layers) {
  const auto& shape = run.golden["q"].shape;
  const auto one =
      encoding("decay:kind=" + kind, {.heads = shape.front(), .dim = shape.back()});
  const at::Tensor x = at::zeros({1, shape.front(), 1, shape.back()}, run.dtype);
  const Layer at{layer, layers, one->layer(layer, layers)};
  return encode_once(*one, x, x, {}, {}, &at).decay.exp();
}

void retention(Run& run) {
  const double d = static_cast<double>(run.golden["q"].shape.back());
  const auto result = decayed(run, run.leaf("gamma"), 1 / std::sqrt(d));
  run.compare("out", result.out);
  run.compare_gradients({{"out", result.out}});
  run.compare("gamma", factor(run, "retnet", 0, 1));
}

void lightning(Run& run) {
  const auto result = decayed(run, run.leaf("lam"), 1);
  run.compare("out", result.out);
  run.compare_if_stored("final_state", result.state.s);
  run.compare_gradients({{"out", result.out}});
  run.compare("lam", factor(run, "lightning", run.golden.param<int64_t>("layer"),
                            run.golden.param<int64_t>("layers")));
}

const RegisterHandler linear_rows[] = {
    RegisterHandler({"linear attention", "linear", normalised}),
    RegisterHandler({"RetNet", "linear", retention}),
    RegisterHandler({"lightning attention", "linear", lightning}),
};

}  // namespace
}  // namespace lagwise::golden
