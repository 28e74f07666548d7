// Attention that forgets and rewrites by content: linear attention with gates, by the
// delta rule too, and the forget gate of exact attention.

#include <ATen/ATen.h>

#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/linear_attention.h"
#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

// [H, N] as [1, H, N]. Where a border is stored, -inf, so is no gradient.
at::Tensor per_row(Run& run, const std::string& name) {
  return (run.golden.has("grad_" + name) ? run.leaf(name) : run.given(name))
      .unsqueeze(0);
}

void gated(Run& run) {
  ops::LinearOptions options;
  options.causal = true;
  const auto divisor = run.golden.param<std::string>("denominator");
  options.denominator = divisor == "none" ? "none" : "same";
  run.expect(divisor == "none" || divisor == "same, eps 1e-6 added",
             "a denominator of 'none' or 'same, eps 1e-6 added'");
  options.log_decay = per_row(run, "log_decay");
  if (run.golden.has("write_strength"))
    options.write_strength = per_row(run, "write_strength");
  ops::LinearState from;
  if (run.golden.has("s0")) from.s = batched(run.leaf("s0"));
  const auto [out, state] =
      ops::linear_attention_stateful(batched(run.leaf("q")), batched(run.leaf("k")),
                                     batched(run.leaf("v")), from, options);
  run.compare("out", out);
  run.compare("s1", state.s);
  run.compare_gradients({{"out", out}, {"s1", state.s}});
}

void forgetting(Run& run) {
  ops::ExactOptions options;
  options.causal = true;
  options.key_bias = -per_row(run, "log_decay").cumsum(-1);
  const at::Tensor out = ops::exact_attention(
      batched(run.leaf("q")), batched(run.leaf("k")), batched(run.leaf("v")), options);
  run.compare("out", out);
  run.compare_gradients({{"out", out}});
}

const RegisterHandler gated_rows[] = {
    RegisterHandler({"gated_linear", "gated", gated}),
    RegisterHandler({"gated_delta", "gated", gated}),
    RegisterHandler({"forgetting_attention", "gated", forgetting}),
};

}  // namespace
}  // namespace lagwise::golden
