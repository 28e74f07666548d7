// A plain decay per head: causal linear attention forgets at a fixed rate.
//
//     score(i, j) *= g_h^(i-j),  0 < g_h < 1
//
// Kinds: retnet, alibi, lightning, tnl (formulas in head_decay.h), or learned, where
// g_h = exp(-exp(rate_h)) starts from ALiBi's slopes and can never grow the past.
//
// Shapes      q and k pass through; decay [H] = log g.
// Parameters  of a layer, kind=learned: "rate" [H].
// Options     kind (retnet).
// Paper       Sun et al., "Retentive Network", 2023, arXiv:2307.08621.

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>

#include <cmath>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"

namespace lagwise {
namespace {

class Decay : public Encoding {
 public:
  Decay(const HeadShape& shape, const std::string& kind)
      : Encoding({.linear_causal = true, .stage = Traits::Stage::score}, shape),
        kind_(kind) {}

  Parameters layer(int64_t index, int64_t count) override {
    if (kind_ != "learned") return {};
    const at::Tensor slopes = -head_decay("alibi", shape().heads, index, count);
    return {{"rate", slopes.log().to(at::kFloat)}};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&,
                 const Layer& layer, const Placement&) override {
    const at::Tensor log_factor =
        kind_ == "learned" ? -layer["rate"].exp()
                           : head_decay(kind_, shape().heads, layer.index, layer.count);
    return {.q = q,
            .k = k,
            .scale = 1 / std::sqrt(double(shape().dim)),
            .decay = log_factor.to(q.scalar_type())};
  }

 private:
  std::string kind_;
};

const RegisterEncoding registered({
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
