// Relative embedding of Music Transformer, for any attention: full, causal, self, cross
// with N != M, cached decoding.
//
//     score(i, j) = (q_i . k_j + q_i . e(lag)) / sqrt(D)
//
// The authors skew a matrix to bring q . e into place, for causal self-attention; here
// attention reads the table by lag, and no matrix is formed.
//
// Shapes      lag_keys [1, N+M-1, D]: one table for all heads.
// Parameters  per layer: "E". form=any: [D, 2 max - 1], column c holds lag c - (max-1).
//             form=causal: [max, D] as the authors store it, row r holds lag
//             max - 1 - r, so the last row is lag 0. Uniform, Glorot.
// Options     max (512): |lag| < max has an entry; form (any | causal);
//             beyond (refuse | clamp): what a visible lag past the table does.
// Paper       Huang et al., "Music Transformer", ICLR 2019.
//             https://arxiv.org/abs/1809.04281; any attention: I. Ukhov,
//             "Relative positional embedding for any attention mechanism", 2022.

#include <ATen/TensorOperators.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/lags.h"

namespace lagwise {
namespace {

class Huang : public Encoding {
 public:
  Huang(const HeadShape& shape, int64_t most, bool causal, bool clamp)
      : Encoding({.exact = true,
                  .stage = Traits::Stage::score,
                  .longest = clamp ? "unbounded" : "table"},
                 shape),
        most_(most),
        causal_(causal),
        clamp_(clamp) {}

  Parameters layer(int64_t index, int64_t) override {
    const int64_t d = shape().dim, entries = causal_ ? most_ : 2 * most_ - 1;
    const double reach = std::sqrt(6.0 / double(d + entries));
    std::vector<int64_t> sizes = {d, entries};
    if (causal_) sizes = {entries, d};
    return {{"E", drawn_uniform(shape(), index, 0, sizes, -reach, reach)}};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&,
                 const Layer& layer, const Placement& at) override {
    refuse_positions("huang", at);
    check_reach(at, q.size(2), k.size(2));
    // Lags that nobody sees, or that are clamped, take the nearest entry.
    const at::Tensor lag = lags_between(at, q.size(2), k.size(2))
                               .clamp(causal_ ? 0 : 1 - most_, most_ - 1);
    const at::Tensor rows = causal_ ? layer["E"] : layer["E"].t();
    const at::Tensor row = causal_ ? most_ - 1 - lag : lag + (most_ - 1);
    Encoded to{.q = q, .k = k, .scale = inverse_root(q.size(3))};
    to.lag_keys = rows.to(q.scalar_type()).index_select(0, row).unsqueeze(0);
    return to;
  }

 private:
  void check_reach(const Placement& at, int64_t n, int64_t m) const {
    if (causal_ && !at.causal)
      throw std::invalid_argument(
          "huang: expected form=any in full attention, got form=causal, whose table "
          "holds no keys ahead");
    if (clamp_ || n == 0 || m == 0) return;
    const int64_t shift = at.query_start - at.key_start;
    const int64_t behind = shift + n - 1, ahead = at.causal ? 0 : m - 1 - shift;
    const int64_t farthest = std::max(behind, ahead);
    if (farthest >= most_)
      throw std::invalid_argument(
          "huang: expected lags below max = " + std::to_string(most_) + ", got " +
          std::to_string(farthest) + "; raise max or take beyond=clamp");
  }

  int64_t most_;
  bool causal_, clamp_;
};

const RegisterEncoding registered({
    .name = "huang",
    .summary = "learned vector per lag against the query, for any attention",
    .paper = "arXiv:1809.04281",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      const int64_t most = spec.take("max", 512);
      const bool causal =
          spec.take_choice("form", "any", {"any", "causal"}) == "causal";
      const auto beyond = spec.take_choice("beyond", "refuse", {"refuse", "clamp"});
      if (most < 1)
        throw std::invalid_argument("huang: expected max >= 1, got " +
                                    std::to_string(most));
      return std::make_unique<Huang>(shape, most, causal, beyond == "clamp");
    },
});

}  // namespace
}  // namespace lagwise
