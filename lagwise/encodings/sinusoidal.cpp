// Sines and cosines of the position, added to the input.
//
//     e(p) = sin and cos of p 10000^(-2j / C),  j = 0..C/2-1
//
// in one of three layouts (docs say "sinusoidal" for all of them, weights do not mix):
//
//     interleaved    sin, cos, sin, cos, ...             Vaswani et al.
//     half           all sines, then all cosines
//     tensor2tensor  the same with exponent -j / (C/2 - 1): tensor2tensor, fairseq
//
// An odd C leaves the last channel 0 (interleaved: its sine has no cosine). Rows with
// no place get nothing. Angles are formed in double: positions to 10^7 hold.
//
// Decay   decay=retnet | alibi | lightning | tnl (head_decay.h) lets attention forget
//         as well: the control for encodings with a decay.
// Shapes  x [B, N, C].
// Options layout (interleaved), base (10000), decay (none).
// Paper   Vaswani et al., "Attention Is All You Need", 2017. arXiv:1706.03762

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/coordinates.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"
#include "lagwise/ops/rotate.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

class Sinusoidal : public Encoding {
 public:
  Sinusoidal(const HeadShape& shape, const std::string& layout, double base,
             const std::string& decay)
      : Encoding({.exact = true,
                  .linear_causal = true,
                  .linear_full = true,
                  .stage = Traits::Stage::input,
                  .relative = false,
                  .by_lag = decay != "none",
                  .decays = decay != "none"},
                 shape),
        interleaved_(layout == "interleaved"),
        decay_(decay) {
    const int64_t c = shape.model_width();
    const int64_t angles = interleaved_ ? (c + 1) / 2 : c / 2;
    if (layout == "tensor2tensor" && angles < 2)
      throw std::invalid_argument(
          "sinusoidal: layout tensor2tensor needs a model width of 4 or more, got " +
          std::to_string(c));
    const double last =
        layout == "tensor2tensor" ? double(angles - 1) : 0.5 * double(c);
    frequency_ = at::zeros({1, angles}, at::kDouble);
    for (int64_t j = 0; j < angles; ++j)
      frequency_.data_ptr<double>()[j] = std::pow(base, -double(j) / last);
  }

  at::Tensor embed(const at::Tensor& x, const Placement& at) override {
    check_grid(at, 1, "sinusoidal");
    const int64_t rows = x.size(1), skipped = unplaced_queries(at, rows);
    const at::Tensor table = ops::rotation_table(query_coordinates(at, rows),
                                                 frequency_, 1, x.scalar_type());
    at::Tensor e = layout_of(table.squeeze(1), x.size(2));
    if (skipped > 0) e.narrow(1, 0, skipped).zero_();
    return x + e;
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&,
                 const Layer& layer, const Placement& at) override {
    Encoded e{.q = q, .k = k, .scale = 1 / std::sqrt(double(shape().dim))};
    if (decay_ != "none")
      fade("sinusoidal", e, head_decay(decay_, shape().heads, layer.index, layer.count),
           at);
    return e;
  }

  OneTokenInput one_token_input() const override {
    const int64_t c = shape().model_width(), angles = frequency_.size(1);
    std::vector<int64_t> sines, cosines;
    for (int64_t j = 0; j < angles; ++j) {
      sines.push_back(interleaved_ ? 2 * j : j);
      cosines.push_back(interleaved_ ? 2 * j + 1 : angles + j);
      if (cosines.back() >= c) cosines.back() = -1;
    }
    OneTokenInput input;
    input.frequency = ops::numbers_of<double>(frequency_);
    input.sine_at = sines, input.cosine_at = cosines;
    return input;
  }
  std::optional<OneTokenPlace> one_token(const Layer& layer, const Draw&,
                                         int64_t) override {
    OneTokenPlace place = as_they_are();
    if (decay_ != "none")
      place.log_fade = ops::numbers_of<float>(
          head_decay(decay_, shape().heads, layer.index, layer.count));
    return place;
  }

 private:
  /// [B|1, N, cosines | sines] -> [B|1, N, C]
  at::Tensor layout_of(const at::Tensor& table, int64_t c) const {
    const int64_t angles = table.size(2) / 2;
    const at::Tensor cosines = table.narrow(2, 0, angles);
    const at::Tensor sines = table.narrow(2, angles, angles);
    at::Tensor e = at::zeros({table.size(0), table.size(1), c}, table.options());
    if (interleaved_) {
      e.slice(2, 0, c, 2).copy_(sines);
      e.slice(2, 1, c, 2).copy_(cosines.narrow(2, 0, c / 2));
    } else {
      e.narrow(2, 0, angles).copy_(sines);
      e.narrow(2, angles, angles).copy_(cosines);
    }
    return e;
  }

  bool interleaved_;
  std::string decay_;
  at::Tensor frequency_;  // [1, C/2]
};

const RegisterEncoding sinusoidal_registered({
    .name = "sinusoidal",
    .summary = "sines and cosines of the position, added to the input",
    .paper = "arXiv:1706.03762",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      const std::string layout = spec.take_choice(
          "layout", "interleaved", {"interleaved", "half", "tensor2tensor"});
      const double base = spec.take("base", 10000.0);
      if (!(base > 1))
        throw std::invalid_argument("sinusoidal: expected base > 1, got " +
                                    std::to_string(base));
      return std::make_unique<Sinusoidal>(shape, layout, base, take_decay(spec));
    },
});

}  // namespace
}  // namespace lagwise
