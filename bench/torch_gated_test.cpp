#include "bench/torch_gated.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

namespace lagwise::bench {
namespace {

using at::Tensor;

/// Leaves of [2, 3, 128, width]; keys of length 1.
struct Problem {
  Problem() {
    const auto leaf = [](const Tensor& x) {
      return x.detach().set_requires_grad(true);
    };
    q = leaf(at::randn({2, 3, 128, 9}, at::kDouble));
    const Tensor keys = at::randn({2, 3, 128, 9}, at::kDouble);
    k = leaf(keys / keys.norm(2, -1, true));
    v = leaf(at::randn({2, 3, 128, 5}, at::kDouble));
    options.causal = true;
    options.denominator = "none";
    log_decay = leaf(at::rand({2, 3, 128}, at::kDouble) * -0.5);
    write_strength = leaf(at::rand({2, 3, 128}, at::kDouble));
    grad_out = at::randn({2, 3, 128, 5}, at::kDouble);
  }
  Tensor q, k, v, log_decay, write_strength, grad_out;
  ops::LinearOptions options;
};

using Function = Tensor (*)(const Tensor&, const Tensor&, const Tensor&,
                            const ops::LinearOptions&);

void expect_like_ours(Function baseline, bool gates, bool delta) {
  Problem p;
  std::vector<Tensor> leaves = {p.q, p.k, p.v};
  if (gates) leaves.push_back(p.options.log_decay = p.log_decay);
  if (delta) leaves.push_back(p.options.write_strength = p.write_strength);
  const auto outcome = [&](Function function) {
    const Tensor out = function(p.q, p.k, p.v, p.options);
    std::vector<Tensor> all = torch::autograd::grad({out}, leaves, {p.grad_out});
    all.push_back(out.detach());
    return all;
  };
  const auto ours = outcome(ops::linear_attention), theirs = outcome(baseline);
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_LE((ours[i] - theirs[i]).abs().max().item<double>(),
              1e-11 * ours[i].abs().max().item<double>())
        << "result " << i;
}

TEST(TorchGated, ChunksAndTokensComputeWhatTheOperatorDoes) {
  for (Function baseline : {torch_chunked, torch_loop}) {
    expect_like_ours(baseline, true, false);
    expect_like_ours(baseline, false, true);
    expect_like_ours(baseline, true, true);
  }
}

TEST(TorchGated, AStepAdvancesTheStateAsOursDoes) {
  Problem p;
  const auto first = [](const Tensor& x) {
    return x.detach().select(2, 0).contiguous();
  };
  p.options.log_decay = first(p.log_decay);
  p.options.write_strength = first(p.write_strength);
  const auto state = [] {
    return ops::LinearState{at::zeros({2, 3, 9, 5}, at::kDouble) + 0.25,
                            at::zeros({2, 3, 0}, at::kDouble)};
  };
  const ops::LinearState ours = state(), theirs = state();
  const Tensor q = first(p.q), k = first(p.k), v = first(p.v);
  const Tensor a = ops::linear_attention_step(q, k, v, ours, p.options);
  const Tensor b = torch_gated_step(q, k, v, theirs, p.options);
  EXPECT_LE((a - b).abs().max().item<double>(), 1e-13);
  EXPECT_LE((ours.s - theirs.s).abs().max().item<double>(), 1e-13);
}

}  // namespace
}  // namespace lagwise::bench
