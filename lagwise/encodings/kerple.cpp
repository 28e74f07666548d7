// KERPLE: a learned penalty on distance that stays a kernel, two numbers per head.
//
//     log:    score(i, j) += -r1 ln(1 + r2 |lag|)      r1, r2 >= 0.01
//     power:  score(i, j) += -r1 |lag|^r2              r1 >= 0.01, 0.01 <= r2 <= 2
//
// Shapes      lag_bias [H, N+M-1]. Numbers out of range are clamped when used.
// Parameters  per layer: "r1" and "r2" [H], uniform in (0, 2) and (0, 1).
// Options     kind (log | power).
// Paper       Chi et al., "KERPLE: Kernelized Relative Positional Embedding for Length
//             Extrapolation", NeurIPS 2022. https://arxiv.org/abs/2205.09921

#include <ATen/TensorOperators.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/pow.h>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/lags.h"

namespace lagwise {
namespace {

constexpr double kLeast = 0.01;

class Kerple : public Encoding {
 public:
  Kerple(const HeadShape& shape, bool power)
      : Encoding({.exact = true,
                  .linear_causal = true,
                  .linear_full = true,
                  .stage = Traits::Stage::score,
                  .by_lag = true},
                 shape),
        power_(power) {}

  Parameters layer(int64_t index, int64_t) override {
    return {{"r1", drawn_uniform(shape(), index, 0, {shape().heads}, 0, 2)},
            {"r2", drawn_uniform(shape(), index, 1, {shape().heads}, 0, 1)}};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&,
                 const Layer& layer, const Placement& at) override {
    refuse_positions("kerple", at);
    const auto own = [&](const char* name) {
      return layer[name].to(q.scalar_type()).unsqueeze(1).clamp_min(kLeast);
    };
    const at::Tensor distance =
        lags_between(at, q.size(2), k.size(2)).abs().to(q.scalar_type());
    const at::Tensor r1 = own("r1"), r2 = own("r2");
    Encoded to{.q = q, .k = k, .scale = inverse_root(q.size(3))};
    if (power_) {
      // 0^r2 is 0, but its gradient would be 0 times ln 0.
      const at::Tensor apart = distance.gt(0).to(q.scalar_type());
      to.lag_bias = -r1 * at::pow(distance.clamp_min(1), r2.clamp_max(2)) * apart;
    } else {
      to.lag_bias = -r1 * at::log1p(r2 * distance);
    }
    return to;
  }

 private:
  bool power_;
};

const RegisterEncoding kerple_registered({
    .name = "kerple",
    .summary = "learned logarithmic or power penalty on distance, per head",
    .paper = "arXiv:2205.09921",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      const auto kind = spec.take_choice("kind", "log", {"log", "power"});
      return std::make_unique<Kerple>(shape, kind == "power");
    },
});

}  // namespace
}  // namespace lagwise
