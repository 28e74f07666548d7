// Your own libtorch module with linear attention inside.
#include <torch/torch.h>

#include <iostream>

#include "lagwise/ops/linear_attention.h"

class CausalHeads : public torch::nn::Module {
 public:
  CausalHeads(int64_t width, int64_t heads) : heads_(heads) {
    qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
    out_ = register_module("out", torch::nn::Linear(width, width));
  }

  torch::Tensor forward(const torch::Tensor& x) {  // [B, N, C] -> [B, N, C]
    const auto parts = qkv_->forward(x).chunk(3, -1);
    auto split = [&](const torch::Tensor& t) {  // [B, H, N, D]: a view, not a copy
      return t.unflatten(-1, {heads_, -1}).transpose(1, 2);
    };
    lagwise::ops::LinearOptions options;
    options.causal = true;
    options.feature_map = "elu1";
    const auto heads = lagwise::ops::linear_attention(split(parts[0]), split(parts[1]),
                                                      split(parts[2]), options);
    return out_->forward(heads.transpose(1, 2).flatten(2));
  }

 private:
  int64_t heads_;
  torch::nn::Linear qkv_ = nullptr;
  torch::nn::Linear out_ = nullptr;
};

int main() {
  torch::manual_seed(1);
  CausalHeads module(32, 4);
  const auto x = torch::randn({2, 100, 32});
  const auto y = module.forward(x);

  auto changed = x.clone();
  changed.slice(1, 60) += 1;  // another future from position 60 on
  const auto z = module.forward(changed);
  const bool causal = torch::equal(y.slice(1, 0, 60), z.slice(1, 0, 60)) &&
                      !torch::equal(y.slice(1, 60), z.slice(1, 60));

  y.square().mean().backward();
  bool learns = true;
  for (const auto& p : module.parameters()) {
    learns = learns && p.grad().defined() && p.grad().isfinite().all().item<bool>() &&
             p.grad().abs().sum().item<float>() > 0;
  }
  std::cout << "own_module: causal " << (causal ? "yes" : "NO") << ", gradients reach "
            << (learns ? "every parameter" : "NOT every parameter") << "\n";
  return causal && learns ? 0 : 1;
}
