// ALiBi: each head subtracts from a score a fixed multiple of the distance.
//
//     score(i, j) += -m_h |lag|,    m_h = 2^(-exponent h / H),  h = 1..H
//
// for H a power of two. Other H take the slopes of the next smaller power of two, H',
// then every other slope of 2 H', from the steepest on (alibi_slopes in head_decay.h).
//
// Shapes      lag_bias [H, N+M-1]; decay [H] = -m_h when causal; q and k pass through.
// Parameters  none.
// Options     exponent (8): the smallest slope is 2^-exponent.
// Linear      causal: exp(-m lag) is a decay per step, exactly. Full: the factor
//             exp(bias) of each pair is Toeplitz, O(N log N) by FFT.
// Paper       Press, Smith, Lewis, "Train Short, Test Long", ICLR 2022.
//             https://arxiv.org/abs/2108.12409
// Note        For H not a power of two we follow the authors' code; the paper gives
//             the formula for powers of two only. Full attention is symmetric.

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"
#include "lagwise/encodings/lags.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

class Alibi : public Encoding {
 public:
  Alibi(const HeadShape& shape, double exponent)
      : Encoding({.exact = true,
                  .linear_causal = true,
                  .linear_full = true,
                  .stage = Traits::Stage::score,
                  .by_lag = true,
                  .decays = true},
                 shape),
        slopes_(at::tensor(alibi_slopes(shape.heads, exponent), at::kDouble)) {}

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&, const Layer&,
                 const Placement& at) override {
    Encoded to{.q = q, .k = k, .scale = inverse_root(q.size(3))};
    fade("alibi", to, -slopes_, at);
    return to;
  }

  std::optional<OneTokenPlace> one_token(const Layer&, const Draw&, int64_t) override {
    OneTokenPlace place = as_they_are();
    place.log_fade = ops::numbers_of<float>(-slopes_);
    return place;
  }

 private:
  at::Tensor slopes_;  // [H], double
};

const RegisterEncoding alibi_registered({
    .name = "alibi",
    .summary = "linear penalty on distance, one fixed slope per head",
    .paper = "arXiv:2108.12409",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      const double exponent = spec.take("exponent", 8.0);
      if (!(exponent > 0 && std::isfinite(exponent)))
        throw std::invalid_argument("alibi: expected exponent > 0, got " +
                                    std::to_string(exponent));
      return std::make_unique<Alibi>(shape, exponent);
    },
});

}  // namespace
}  // namespace lagwise
