// RoPE: queries and keys are turned in planes, each with a frequency of its own, so
// that their product depends on the lag alone.
//
//     q'_a = c q_a - s q_b,  q'_b = c q_b + s q_a;   c, s = cos, sin of p f_j
//     f_j  = base^(-2j/d),  d the rotated coordinates, (a, b) the planes of the layout
//
// The layout is always stated, because weights trained with one are garbage in the
// other: interleaved (2j, 2j+1) is RoFormer's and GPT-J's, half (j, j+d/2) NeoX's and
// Llama's. half(x[i]) = interleaved(x)[i] with i = evens, then odds.
//
// xPos (xpos=true) lets plane j fade by zeta_j^(1/512) a step, zeta_j = (2j + 0.4 d) /
// (1.4 d): a decay per channel, for causal linear attention at any length. xpos=scores
// multiplies q by zeta^((p - centre)/512) and divides k by it instead, for exact causal
// attention; numbers grow with |p - centre|, so that positions further away are
// refused.
//
// decay=retnet | alibi | lightning | tnl (head_decay.h) makes the kernel fade with the
// lag, in every plane alike: a decay of the state in causal linear attention and, the
// same kernel, a bias by lag in exact attention.
//
// On a grid of A axes each takes d / A of the coordinates (axial RoPE), with f_j over
// d / A. Rows with no place are left alone.
//
// Shapes  q, k [B, H, N, D] -> the same.
// Stage   after the feature map in linear attention; the denominator is formed from the
//         features before the rotation.
// Options layout (must be given), base (10000), partial (1: share of D that turns),
//         scaling none | linear | ntk | dynamic_ntk | yarn | llama3 with factor,
//         original, low, high, beta_fast, beta_slow, horizon (rope_frequencies.h);
//         xpos false | true | scores, xpos_base (512), centre (0); decay (none).
// Paper   Su et al., "RoFormer", 2021, arXiv:2104.09864; Sun et al., "A
//         Length-Extrapolatable Transformer", 2022, arXiv:2212.10554 (xPos).

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/max.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/coordinates.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"
#include "lagwise/encodings/rope_frequencies.h"
#include "lagwise/encodings/row_tables.h"
#include "lagwise/ops/rotate.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

constexpr double kGamma = 0.4;  // xPos: the fastest plane keeps gamma / (1 + gamma)

struct RopeOptions {
  std::string layout;
  double base = 10000, partial = 1;
  RopeScaling scaling;
  std::string xpos = "false";
  double xpos_base = 512, centre = 0;
  std::string decay = "none";
};

Traits traits_of(const RopeOptions& o) {
  const bool fades = o.xpos == "true", scores = o.xpos == "scores";
  const bool decays = o.decay != "none";
  return {.exact = !fades,
          .linear_causal = !scores,
          .linear_full = !fades && !scores && !decays,
          .stage = Traits::Stage::after_map,
          .denominator = Traits::Denominator::separate,
          .dims = fades || scores || decays ? 1 : 3,
          .longest = o.scaling.kind == "dynamic_ntk" ? "horizon" : "unbounded",
          .by_lag = decays,
          .decays = fades || decays};
}

class Rope : public Encoding {
 public:
  Rope(const HeadShape& shape, const RopeOptions& options)
      : Encoding(traits_of(options), shape),
        options_(options),
        rotated_(2 * static_cast<int64_t>(options.partial * double(shape.dim) / 2)) {}

  /// The table of queries and that of keys, in float: see `tables`.
  Code code(const Placement& at, const Draw& draw, int64_t queries, int64_t keys,
            const Code*) override {
    return {draw, tables(at, queries, keys, at::kFloat)};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code& code,
                 const Layer& layer, const Placement& at) override {
    const auto* t = code.as<RowTables>();
    std::shared_ptr<const RowTables> other;
    // The code does not know the type of the layers: nearly always it is float.
    if (t == nullptr || q.scalar_type() != t->queries.scalar_type())
      t = (other = tables(at, q.size(2), k.size(2), q.scalar_type())).get();
    Encoded e{.q = ops::rotate(q, t->queries, options_.layout),
              .k = ops::rotate(k, t->keys, options_.layout),
              .scale = 1 / std::sqrt(double(shape().dim))};
    if (options_.xpos == "true") e.decay = fading(q.options());
    if (options_.decay != "none")
      fade("rope", e,
           head_decay(options_.decay, shape().heads, layer.index, layer.count), at);
    return e;
  }

  std::optional<OneTokenPlace> one_token(const Layer& layer, const Draw&,
                                         int64_t horizon) override {
    Placement at;
    at.horizon = horizon;
    RopeFrequencies r = rope_frequencies(rotated_, options_.base, scaling_for(at));
    OneTokenPlace place = as_they_are();
    place.planes = rotated_ / 2;
    place.frequency = std::move(r.f);
    place.turn_scale = r.attention;
    place.interleaved = options_.layout == "interleaved";
    if (options_.xpos == "true")
      place.log_fade = ops::numbers_of<float>(fading(at::kFloat));
    if (options_.decay != "none")
      place.log_fade = ops::numbers_of<float>(
          head_decay(options_.decay, shape().heads, layer.index, layer.count));
    return place;
  }

 private:
  std::shared_ptr<const RowTables> tables(const Placement& at, int64_t queries,
                                          int64_t keys, at::ScalarType type) const {
    check_grid(at, traits().dims, "rope");
    const int64_t axes = std::max<int64_t>(1, int64_t(at.grid.size()));
    if (rotated_ % (2 * axes) != 0)
      throw std::invalid_argument("rope: expected " + std::to_string(rotated_) +
                                  " rotated coordinates to be a multiple of 2 x " +
                                  std::to_string(axes) + " axes");
    const RopeFrequencies r =
        rope_frequencies(rotated_ / axes, options_.base, scaling_for(at));
    at::Tensor f = at::zeros({axes, rotated_ / axes / 2}, at::kDouble);
    for (size_t j = 0; j < r.f.size(); ++j) f.select(1, int64_t(j)).fill_(r.f[j]);
    f = f.reshape({1, rotated_ / 2});
    const auto table = [&](const at::Tensor& p, double sign) {
      return scaled(ops::rotation_table(p, f, r.attention, type), p, sign);
    };
    const at::Tensor p = query_coordinates(at, queries);
    const at::Tensor of_queries = table(p, 1);
    if (same_places(at, queries, keys) && options_.xpos != "scores")
      return std::make_shared<RowTables>(of_queries, of_queries);
    return std::make_shared<RowTables>(of_queries,
                                       table(key_coordinates(at, keys), -1));
  }

  RopeScaling scaling_for(const Placement& at) const {
    RopeScaling scaling = options_.scaling;
    if (scaling.kind != "dynamic_ntk") return scaling;
    if (at.horizon > 0) scaling.length = double(at.horizon);
    if (scaling.length <= 0)
      throw std::invalid_argument(
          "rope: scaling dynamic_ntk needs a fixed horizon, since frequencies that "
          "change as a text grows make rotated keys stale; give horizon=");
    return scaling;
  }

  /// log zeta_j / xpos_base of the planes. [P]
  at::Tensor log_fade() const {
    at::Tensor log_fade = at::zeros({rotated_ / 2}, at::kDouble);
    const auto d = double(rotated_);
    for (int64_t j = 0; j < rotated_ / 2; ++j)
      log_fade.data_ptr<double>()[j] =
          std::log((2 * double(j) + kGamma * d) / ((1 + kGamma) * d)) /
          options_.xpos_base;
    return log_fade;
  }

  /// xpos=true: the same per coordinate, [H, D]; those that do not turn do not fade.
  at::Tensor fading(const at::TensorOptions& like) const {
    const at::Tensor planes = log_fade();
    const at::Tensor both = options_.layout == "half"
                                ? at::cat({planes, planes})
                                : planes.unsqueeze(1).expand({-1, 2}).reshape(-1);
    const at::Tensor rest = at::zeros({shape().dim - rotated_}, at::kDouble);
    return at::cat({both, rest})
        .to(like.dtype().toScalarType())
        .expand({shape().heads, shape().dim});
  }

  /// xpos=scores: a table times zeta^(sign (p - centre) / xpos_base).
  at::Tensor scaled(const at::Tensor& table, const at::Tensor& p, double sign) const {
    if (options_.xpos != "scores") return table;
    const at::Tensor away = p - options_.centre;  // [B|1, N, 1]
    const double furthest = 64 * options_.xpos_base;
    if (away.numel() > 0 && away.abs().max().item<double>() > furthest)
      throw std::invalid_argument(
          "rope: xpos=scores holds to " + std::to_string(int64_t(furthest)) +
          " positions from its centre, got " +
          std::to_string(int64_t(away.abs().max().item<double>())) +
          "; causal linear attention (xpos=true) has no limit");
    const at::Tensor fade = (sign * away * log_fade()).exp();  // [B|1, N, P]
    return table * at::cat({fade, fade}, 2).unsqueeze(1).to(table.scalar_type());
  }

  RopeOptions options_;
  int64_t rotated_;  // coordinates, even
};

void check(const RopeOptions& o) {
  const auto refuse = [](const std::string& what, double got) {
    throw std::invalid_argument("rope: expected " + what + ", got " +
                                std::to_string(got));
  };
  if (!(o.base > 1)) refuse("base > 1", o.base);
  if (!(o.partial > 0 && o.partial <= 1)) refuse("partial in (0, 1]", o.partial);
  if (!(o.scaling.factor >= 1)) refuse("factor >= 1", o.scaling.factor);
  if (!(o.scaling.original > 0)) refuse("original > 0", o.scaling.original);
  if (!(o.scaling.low < o.scaling.high)) refuse("low < high", o.scaling.low);
  if (!(o.scaling.beta_slow > 0 && o.scaling.beta_slow < o.scaling.beta_fast))
    refuse("0 < beta_slow < beta_fast", o.scaling.beta_slow);
  if (!(o.xpos_base > 0)) refuse("xpos_base > 0", o.xpos_base);
  if (o.decay != "none" && o.xpos != "false")
    throw std::invalid_argument("rope: expected xpos or decay, got xpos=" + o.xpos +
                                " and decay=" + o.decay);
}

/// There is no default: see the top of this file.
std::string read_layout(Spec& spec) {
  try {
    return spec.take_choice("layout", "", {"interleaved", "half"});
  } catch (const std::invalid_argument&) {
    const std::string given = spec.take("layout", "");
    throw std::invalid_argument(
        "rope: " +
        (given.empty() ? "option 'layout' must be given"
                       : "option 'layout' is '" + given + "'") +
        ", expected one of interleaved (pairs 2j, 2j+1: RoFormer, GPT-J), half (pairs "
        "j, j+d/2: NeoX, Llama)");
  }
}

std::unique_ptr<Encoding> make_rope(Spec& spec, const HeadShape& shape) {
  RopeOptions o;
  o.layout = read_layout(spec);
  o.base = spec.take("base", o.base);
  o.partial = spec.take("partial", o.partial);
  RopeScaling& s = o.scaling;
  s.kind = spec.take_choice("scaling", "none",
                            {"none", "linear", "ntk", "dynamic_ntk", "yarn", "llama3"});
  s.factor = spec.take("factor", s.factor);
  s.original = double(spec.take("original", int64_t{2048}));
  s.low = spec.take("low", s.low);
  s.high = spec.take("high", s.high);
  s.beta_fast = spec.take("beta_fast", s.beta_fast);
  s.beta_slow = spec.take("beta_slow", s.beta_slow);
  s.length = double(spec.take("horizon", 0));
  o.xpos = spec.take_choice("xpos", "false", {"false", "true", "scores"});
  o.xpos_base = spec.take("xpos_base", o.xpos_base);
  o.centre = spec.take("centre", o.centre);
  o.decay = take_decay(spec);
  check(o);
  return std::make_unique<Rope>(shape, o);
}

const RegisterEncoding rope_registered({
    .name = "rope",
    .summary = "planes of queries and keys turn with the position",
    .paper = "arXiv:2104.09864",
    .make = make_rope,
    .example = "rope:layout=half",
});

}  // namespace
}  // namespace lagwise
