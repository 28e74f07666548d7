// Transformer-XL: the query meets a projected sinusoid of the lag, and two learned
// vectors stand in for it where position must not depend on content.
//
//     score(i, j) = ((q_i + u) . k_j + (q_i + v) . W_R R(lag)) / sqrt(D)
//                 = ((q_i + u) . (k_j + W_R R(lag)) + (v - u) . W_R R(lag)) / sqrt(D)
//     R(lag) = [sin(lag f), cos(lag f)],  f_x = 10000^(-2x / C), x = 0 .. C/2 - 1
//
// The second line is what is handed over: q' = q + u, lag_keys and a lag_bias.
//
// Shapes      q [B, H, N, D]; lag_keys [H, N+M-1, D]; lag_bias [H, N+M-1].
// Parameters  per layer: "u" and "v_bias" [H, D], normal with deviation 0.02;
//             "W_R" [H, D, C], normal with deviation 1 / sqrt(C). C the model width.
// Paper       Dai et al., "Transformer-XL", ACL 2019. https://arxiv.org/abs/1901.02860

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sin.h>

#include <cmath>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/lags.h"

namespace lagwise {
namespace {

/// R, [lags, C], angles formed in double.
at::Tensor sinusoid(const at::Tensor& lag, int64_t width) {
  const at::Tensor x = at::arange((width + 1) / 2, at::kDouble);
  const at::Tensor f = at::exp(x * (-2 * std::log(10000.0) / double(width)));
  const at::Tensor angle = lag.to(at::kDouble).unsqueeze(1) * f;
  return at::cat({at::sin(angle), at::cos(angle).slice(1, 0, width / 2)}, 1);
}

struct LagSinusoid : Prepared {
  explicit LagSinusoid(at::Tensor r) : r(std::move(r)) {}
  int64_t bytes() const override { return bytes_of(r); }

  at::Tensor r;  ///< [L, C]: of every lag between two rows
};

class TransformerXl : public Encoding {
 public:
  explicit TransformerXl(const HeadShape& shape)
      : Encoding({.exact = true, .stage = Traits::Stage::score, .by_lag = true},
                 shape) {}

  Parameters layer(int64_t index, int64_t) override {
    const int64_t h = shape().heads, d = shape().dim, c = shape().model_width();
    return {{"u", drawn_normal(shape(), index, 0, {h, d}, 0.02)},
            {"v_bias", drawn_normal(shape(), index, 1, {h, d}, 0.02)},
            {"W_R", drawn_normal(shape(), index, 2, {h, d, c}, inverse_root(c))}};
  }

  /// The sinusoid is the same in every layer.
  Code code(const Placement& at, const Draw& draw, int64_t queries, int64_t keys,
            const Code*) override {
    refuse_positions("transformer_xl", at);
    return {draw, std::make_shared<LagSinusoid>(sinusoid(
                      lags_between(at, queries, keys), shape().model_width()))};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code& code,
                 const Layer& layer, const Placement& at) override {
    refuse_positions("transformer_xl", at);
    const auto own = [&](const char* name) { return layer[name].to(q.scalar_type()); };
    const at::Tensor u = own("u"), v = own("v_bias");
    const at::Tensor r = code.as<LagSinusoid>()->r.to(q.scalar_type());
    Encoded to{.q = q + u.unsqueeze(1), .k = k, .scale = inverse_root(q.size(3))};
    to.lag_keys = at::matmul(r, own("W_R").transpose(1, 2));  // [H, L, D]
    to.lag_bias = at::matmul(to.lag_keys, ((v - u) * to.scale).unsqueeze(2)).squeeze(2);
    return to;
  }
};

const RegisterEncoding transformer_xl_registered({
    .name = "transformer_xl",
    .summary = "projected sinusoid of the lag, with global content and position terms",
    .paper = "arXiv:1901.02860",
    .make = [](Spec&, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      return std::make_unique<TransformerXl>(shape);
    },
});

}  // namespace
}  // namespace lagwise
