// Shaw: learned vectors by clipped lag, added to keys and to values.
//
//     score(i, j) = q_i . (k_j + rel_k[c]) / sqrt(D)
//     out_i = sum_j w_ij (v_j + rel_v[c]),    c = clip(-lag, -K, K) + K
//
// Shapes      lag_keys [1, N+M-1, D], lag_values [1, N+M-1, E]: one for all heads.
// Parameters  per layer: "rel_k" [2K+1, D] and, with values, "rel_v" [2K+1, E]; row r
//             serves the key r - K rows ahead of its query. Normal with deviation
//             1 / sqrt(D).
// Options     clip (16) = K, 0 legal: one vector for all; values (true).
// Paper       Shaw, Uszkoreit, Vaswani, "Self-Attention with Relative Position
//             Representations", NAACL 2018. https://arxiv.org/abs/1803.02155

#include <ATen/TensorOperators.h>

#include <stdexcept>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/lags.h"

namespace lagwise {
namespace {

class Shaw : public Encoding {
 public:
  Shaw(const HeadShape& shape, int64_t clip, bool values)
      : Encoding({.exact = true, .stage = Traits::Stage::score}, shape),
        clip_(clip),
        values_(values) {}

  Parameters layer(int64_t index, int64_t) override {
    const int64_t rows = 2 * clip_ + 1;
    const double spread = inverse_root(shape().dim);
    Parameters own = {
        {"rel_k", drawn_normal(shape(), index, 0, {rows, shape().dim}, spread)}};
    if (values_)
      own.emplace_back("rel_v", drawn_normal(shape(), index, 1,
                                             {rows, shape().value_width()}, spread));
    return own;
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&,
                 const Layer& layer, const Placement& at) override {
    refuse_positions("shaw", at);
    const at::Tensor row =
        (-lags_between(at, q.size(2), k.size(2))).clamp(-clip_, clip_) + clip_;
    const auto table = [&](const at::Tensor& x) {
      return x.to(q.scalar_type()).index_select(0, row).unsqueeze(0);
    };
    Encoded to{.q = q, .k = k, .scale = inverse_root(q.size(3))};
    to.lag_keys = table(layer["rel_k"]);
    if (values_) to.lag_values = table(layer["rel_v"]);
    return to;
  }

 private:
  int64_t clip_;
  bool values_;
};

const RegisterEncoding shaw_registered({
    .name = "shaw",
    .summary = "learned vectors by clipped lag, added to keys and values",
    .paper = "arXiv:1803.02155",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      const int64_t clip = spec.take("clip", 16);
      if (clip < 0)
        throw std::invalid_argument("shaw: expected clip >= 0, got " +
                                    std::to_string(clip));
      return std::make_unique<Shaw>(shape, clip, spec.take("values", true));
    },
});

}  // namespace
}  // namespace lagwise
