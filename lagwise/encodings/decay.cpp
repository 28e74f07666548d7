// A plain decay per head: attention forgets at a fixed rate.
//
//     weight(i, j) *= g_h^|i-j|,  0 < g_h < 1
//
// In causal linear attention a decay of the state; in exact attention log g_h |i-j| is
// added to the score, and in full linear attention the factors are applied by FFT.
//
// Kinds: retnet, alibi, lightning, tnl (formulas in head_decay.h), or learned, where
// g_h = exp(-exp(rate_h)) starts from ALiBi's slopes and can never grow the past.
//
// Shapes      q and k pass through; decay [H] = log g when causal; lag_bias [H, N+M-1].
// Parameters  of a layer, kind=learned: "rate" [H].
// Options     kind (retnet).
// Paper       Sun et al., "Retentive Network", 2023, arXiv:2307.08621.

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>

#include <cmath>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

class Decay : public Encoding {
 public:
  Decay(const HeadShape& shape, const std::string& kind)
      : Encoding({.exact = true,
                  .linear_causal = true,
                  .linear_full = true,
                  .stage = Traits::Stage::score,
                  .by_lag = true,
                  .decays = true},
                 shape),
        kind_(kind) {}

  Parameters layer(int64_t index, int64_t count) override {
    if (kind_ != "learned") return {};
    const at::Tensor slopes = -head_decay("alibi", shape().heads, index, count);
    return {{"rate", slopes.log().to(at::kFloat)}};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&,
                 const Layer& layer, const Placement& at) override {
    Encoded to{.q = q, .k = k, .scale = 1 / std::sqrt(double(shape().dim))};
    fade("decay", to, log_factor(layer), at);
    return to;
  }

  std::optional<OneTokenPlace> one_token(const Layer& layer, const Draw&,
                                         int64_t) override {
    OneTokenPlace place = as_they_are();
    place.log_fade = ops::numbers_of<float>(log_factor(layer));
    return place;
  }

 private:
  at::Tensor log_factor(const Layer& layer) const {
    return kind_ == "learned"
               ? -layer["rate"].exp()
               : head_decay(kind_, shape().heads, layer.index, layer.count);
  }

  std::string kind_;
};

const RegisterEncoding decay_registered({
    .name = "decay",
    .summary = "each head forgets the past at its own rate",
    .paper = "arXiv:2307.08621",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      std::vector<std::string> kinds = decay_kinds();
      kinds.push_back("learned");
      return std::make_unique<Decay>(shape, spec.take_choice("kind", "retnet", kinds));
    },
});

}  // namespace
}  // namespace lagwise
