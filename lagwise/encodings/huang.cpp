// Relative embedding of Music Transformer, for any attention: full, causal, self, cross
// with N != M, cached decoding.
//
//     score(i, j) = (q_i . k_j + q_i . e(lag)) / sqrt(D)
//
// The authors skew a matrix to bring q . e into place, for causal self-attention; here
// attention reads the table by lag, and no matrix is formed.
//
// Shapes      lag_keys [1, N+M-1, D], or [H, N+M-1, D] with tables=head.
// Parameters  per layer: "E". form=any: [D, 2 max - 1], column c holds lag c - (max-1).
//             form=causal: [max, D] as the authors store it, row r holds lag
//             max - 1 - r, so the last row is lag 0. Uniform, Glorot. tables=head puts
//             H of them one after another: [H, D, 2 max - 1] or [H, max, D].
// HuangOptions     max (512): |lag| < max has an entry; form (any | causal);
//             tables (one | head): one for all heads, or one for each, as the authors'
//             code in tensor2tensor has it;
//             beyond (refuse | clamp | zero): what a visible lag past the table does.
//             clamp: takes the farthest entry; zero: adds nothing, as tensor2tensor
//             pads its table.
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

struct HuangOptions {
  int64_t most = 512;
  bool causal = false, per_head = false;
  std::string beyond;
};

class Huang : public Encoding {
 public:
  Huang(const HeadShape& shape, const HuangOptions& options)
      : Encoding({.exact = true,
                  .stage = Traits::Stage::score,
                  .longest = options.beyond == "refuse" ? "table" : "unbounded"},
                 shape),
        options_(options) {}

  Parameters layer(int64_t index, int64_t) override {
    const int64_t d = shape().dim, most = options_.most;
    const int64_t entries = options_.causal ? most : 2 * most - 1;
    const double reach = std::sqrt(6.0 / double(d + entries));
    std::vector<int64_t> sizes = {d, entries};
    if (options_.causal) sizes = {entries, d};
    if (options_.per_head) sizes.insert(sizes.begin(), shape().heads);
    return {{"E", drawn_uniform(shape(), index, 0, sizes, -reach, reach)}};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&,
                 const Layer& layer, const Placement& at) override {
    refuse_positions("huang", at);
    check_reach(at, q.size(2), k.size(2));
    const int64_t most = options_.most;
    const at::Tensor lag = lags_between(at, q.size(2), k.size(2));
    // Lags that nobody sees, or that are clamped, take the nearest entry.
    const at::Tensor known = lag.clamp(options_.causal ? 0 : 1 - most, most - 1);
    const at::Tensor tables = options_.causal ? layer["E"] : layer["E"].mT();
    const at::Tensor row = options_.causal ? most - 1 - known : known + (most - 1);
    Encoded to{.q = q, .k = k, .scale = inverse_root(q.size(3))};
    to.lag_keys = tables.to(q.scalar_type()).index_select(-2, row);
    if (!options_.per_head) to.lag_keys = to.lag_keys.unsqueeze(0);
    if (options_.beyond == "zero")
      to.lag_keys =
          to.lag_keys * lag.eq(known).to(q.scalar_type()).unsqueeze(1);  // [N+M-1, 1]
    return to;
  }

 private:
  void check_reach(const Placement& at, int64_t n, int64_t m) const {
    if (options_.causal && !at.causal)
      throw std::invalid_argument(
          "huang: expected form=any in full attention, got form=causal, whose table "
          "holds no keys ahead");
    if (options_.beyond != "refuse" || n == 0 || m == 0) return;
    const int64_t shift = at.query_start - at.key_start;
    const int64_t behind = shift + n - 1, ahead = at.causal ? 0 : m - 1 - shift;
    const int64_t farthest = std::max(behind, ahead);
    if (farthest >= options_.most)
      throw std::invalid_argument(
          "huang: expected lags below max = " + std::to_string(options_.most) +
          ", got " + std::to_string(farthest) +
          "; raise max or take beyond=clamp or beyond=zero");
  }

  HuangOptions options_;
};

const RegisterEncoding huang_registered({
    .name = "huang",
    .summary = "learned vector per lag against the query, for any attention",
    .paper = "arXiv:1809.04281",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      HuangOptions o;
      o.most = spec.take("max", o.most);
      o.causal = spec.take_choice("form", "any", {"any", "causal"}) == "causal";
      o.per_head = spec.take_choice("tables", "one", {"one", "head"}) == "head";
      o.beyond = spec.take_choice("beyond", "refuse", {"refuse", "clamp", "zero"});
      if (o.most < 1)
        throw std::invalid_argument("huang: expected max >= 1, got " +
                                    std::to_string(o.most));
      return std::make_unique<Huang>(shape, o);
    },
});

}  // namespace
}  // namespace lagwise
