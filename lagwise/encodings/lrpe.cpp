// LRPE: linearized relative positional encoding, the family of unitary encodings that
// split into a query's and a key's part: W_(t-s) = M_s^H M_t.
//
//     x'_s = Lambda(s) P x_s,   Lambda(s)^H Lambda(t) = Lambda(t-s),   P^H P = 1
//
//     lambda=rotation     planes (2j, 2j+1) turn by s theta_j; an odd last one stays
//     lambda=mixed        only the first D/2 (made even) coordinates turn; needs D >= 3
//     lambda=permutation  y_j = x[pi^s(j)], by the cycles of pi: no limit to positions
//     lambda=unitary      coordinate j times exp(i s theta_j), stored as [real | imag]
//
// P: lrpe_projection.h. With a real P the unitary score is even in the lag: it cannot
// tell the past from the future, which causal attention does not need.
//
// Angles  type a: theta_j = base^(-2j/e), e the coordinates that turn, or D (unitary);
//         b: (pi/2n) j/(e/2); c: pi/(2 n j), j = 1..e/2: rotations only, with n a fixed
//         horizon. spread=true deals type a out to all heads: base^(-2m/(H D)),
//         m = h J + j with J angles a head. On a grid of A axes each takes 1/A of the
//         angles, every axis the same first ones (MD-LRPE).
// Decay   LRPE-d: decay=retnet | alibi | lightning | tnl (head_decay.h).
//
// Shapes  q, k [B, H, N, D] -> the same, or 2D wide: unitary, and a complex P.
// Stage   after the feature map in linear attention; the denominator is formed from the
//         features before the encoding.
// Learned per layer: "theta" [J] or [H, J] if angles=learned; "v" [reflections, D] if
//         vectors=learned.
// Given   instead of fixed ones, in Draw.given: "theta", "householder_v" ([D] or
//         [reflections, D]), "permutation" (int64 [D], y_j = x[pi(j)] at position 1).
// Options lambda (rotation), p (householder), type (a), angles fixed | learned, spread
//         (false), base (10000), vectors fixed | learned, reflections (1), decay
//         (none), horizon (0); a horizon of the Placement takes precedence. Where
//         there are angles to learn they are learned unless the option says otherwise;
//         permutations and types b and c have fixed ones. So `lrpe` alone is the
//         authors' final setting.
// Note    A rotation with fixed angles and p=identity is RoPE, by another name.
// Paper   Qin et al., "Linearized Relative Positional Encoding", TMLR 2023,
//         arXiv:2307.09270; LRPE-d: Qin et al., 2023, arXiv:2307.14995.
// Maths   docs/maths/lrpe.md

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "lagwise/encodings/coordinates.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"
#include "lagwise/encodings/lrpe_projection.h"
#include "lagwise/encodings/permutation_powers.h"
#include "lagwise/encodings/row_tables.h"
#include "lagwise/ops/rotate.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

struct LrpeOptions {
  std::string lambda, p, type, decay;
  bool learned_angles = false, learned_vectors = false, spread = false;
  double base = 10000;
  int64_t reflections = 1, horizon = 0;

  bool permutes() const { return lambda == "permutation"; }
  bool unitary() const { return lambda == "unitary"; }
};

Traits traits_of(const LrpeOptions& o) {
  const bool fades = o.decay != "none";
  return {.exact = true,
          .linear_causal = true,
          .linear_full = !fades,
          .stage = Traits::Stage::after_map,
          .denominator = Traits::Denominator::separate,
          .dims = fades || o.permutes() ? 1 : 3,
          .longest = o.type == "a" ? "unbounded" : "horizon",
          .by_lag = fades,
          .decays = fades};
}

/// How many angles a head has.
int64_t angles_of(const LrpeOptions& o, int64_t dim) {
  if (o.permutes()) return 0;
  if (o.unitary()) return dim;
  if (o.lambda == "rotation") return dim / 2;
  return (dim / 2 + 1) / 2;  // mixed: half the coordinates, one more if that is odd
}

class Lrpe : public Encoding {
 public:
  Lrpe(const HeadShape& shape, const LrpeOptions& options)
      : Encoding(traits_of(options), shape),
        options_(options),
        project_(options.p, shape.dim),
        angles_(angles_of(options, shape.dim)) {
    if (options.p == "householder")
      vectors_ = householder_vectors(options.reflections, shape.dim, shape.seed, 0);
    if (options.permutes()) permutation_ = long_permutation(shape.dim, shape.seed);
  }

  int64_t width() const override {
    return shape().dim * (options_.unitary() || project_.complex() ? 2 : 1);
  }

  Parameters layer(int64_t index, int64_t) override {
    Parameters own;
    if (options_.learned_angles)
      own.emplace_back("theta", fixed_angles(0).to(at::kFloat));
    if (options_.learned_vectors)
      own.emplace_back("v", householder_vectors(options_.reflections, shape().dim,
                                                shape().seed, index + 1));
    return own;
  }

  /// The tables of queries and keys: indices of permutations; cosines and sines in
  /// float, unless each layer has angles of its own.
  Code code(const Placement& at, const Draw& draw, int64_t queries, int64_t keys,
            const Code*) override {
    check_grid(at, traits().dims, "lrpe");
    if (options_.learned_angles) return {draw};
    return {draw, tables(at, draw, {}, queries, keys, at::kFloat)};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code& code,
                 const Layer& layer, const Placement& at) override {
    const auto* t = code.as<RowTables>();
    std::shared_ptr<const RowTables> own;
    if (t == nullptr ||
        !(options_.permutes() || t->queries.scalar_type() == q.scalar_type())) {
      own = tables(at, code.draw, layer, q.size(2), k.size(2), q.scalar_type());
      t = own.get();
    }
    const at::Tensor v = vectors(code.draw, layer);
    Encoded e{.q = encoded(project_(q, v, options_.learned_vectors), t->queries),
              .k = encoded(project_(k, v, options_.learned_vectors), t->keys),
              .scale = 1 / std::sqrt(double(shape().dim))};
    if (options_.decay != "none")
      fade("lrpe", e,
           head_decay(options_.decay, shape().heads, layer.index, layer.count), at);
    return e;
  }

  std::optional<OneTokenPlace> one_token(const Layer& layer, const Draw& draw,
                                         int64_t horizon) override {
    if (options_.permutes()) return std::nullopt;
    Placement at;
    at.horizon = horizon;
    OneTokenPlace place = as_they_are();
    place.matrix = ops::numbers_of<float>(matrix(draw, layer));
    place.planes = angles_;
    place.frequency = ops::numbers_of<double>(angles(draw, layer, at));
    place.interleaved = !options_.unitary();
    place.blocks = project_.complex() && !options_.unitary() ? 2 : 1;
    if (options_.decay != "none")
      place.log_fade = ops::numbers_of<float>(
          head_decay(options_.decay, shape().heads, layer.index, layer.count));
    return place;
  }

 private:
  /// P as a matrix that rows are multiplied with, [D, width()], with columns of zeros
  /// for the imaginary part where P is real and Lambda is not; undefined: P = 1.
  at::Tensor matrix(const Draw& draw, const Layer& layer) const {
    if (options_.p == "identity" && !options_.unitary()) return {};
    const at::Tensor p = project_(at::eye(shape().dim, at::kFloat),
                                  vectors(draw, layer), options_.learned_vectors);
    if (project_.complex() || !options_.unitary()) return p;
    return at::cat({p, at::zeros_like(p)}, 1);
  }

  /// Lambda of projected rows, [.., D] or [.., 2D].
  at::Tensor encoded(const at::Tensor& x, const at::Tensor& table) const {
    const int64_t d = shape().dim;
    if (options_.unitary()) {  // (x + i y) e^(i t): planes (j, j+D)
      const at::Tensor both =
          project_.complex() ? x : at::cat({x, at::zeros_like(x)}, -1);
      return ops::rotate(both, table, "half");
    }
    if (project_.complex())
      return at::cat(
          {turned(x.narrow(-1, 0, d), table), turned(x.narrow(-1, d, d), table)}, -1);
    return turned(x, table);
  }

  at::Tensor turned(const at::Tensor& x, const at::Tensor& table) const {
    if (!options_.permutes()) return ops::rotate(x, table, "interleaved");
    return x.gather(-1, table.expand(x.sizes()));
  }

  std::shared_ptr<const RowTables> tables(const Placement& at, const Draw& draw,
                                          const Layer& layer, int64_t queries,
                                          int64_t keys, at::ScalarType type) const {
    const at::Tensor theta =
        options_.permutes() ? at::Tensor() : angles(draw, layer, at);
    const auto table = [&](const at::Tensor& p) {
      return options_.permutes()
                 ? indices(p, draw)
                 : ops::rotation_table(p, per_axis(theta, p.size(2)), 1, type);
    };
    const at::Tensor first = table(query_coordinates(at, queries));
    return std::make_shared<RowTables>(first, same_places(at, queries, keys)
                                                  ? first
                                                  : table(key_coordinates(at, keys)));
  }

  /// [B|1, N, 1] -> int64 [B|1, 1, N, D]
  at::Tensor indices(const at::Tensor& p, const Draw& draw) const {
    std::vector<int64_t> pi = permutation_;
    const auto given = draw.given.find("permutation");
    if (given != draw.given.end()) {
      const at::Tensor x = given->second.to(at::kLong).contiguous();
      pi.assign(x.data_ptr<int64_t>(), x.data_ptr<int64_t>() + x.numel());
    }
    return PermutationPowers(pi).table(p).view({p.size(0), 1, p.size(1), shape().dim});
  }

  /// The angles of a call, double [H|1, J].
  at::Tensor angles(const Draw& draw, const Layer& layer, const Placement& at) const {
    at::Tensor theta;
    const auto given = draw.given.find("theta");
    if (options_.learned_angles) {
      theta = layer["theta"];
    } else if (given != draw.given.end()) {
      theta = given->second;
    } else {
      theta = fixed_angles(at.horizon > 0 ? at.horizon : options_.horizon);
    }
    return theta.to(at::kDouble).reshape({-1, angles_});
  }

  at::Tensor fixed_angles(int64_t horizon) const {
    if (options_.type != "a" && horizon <= 0)
      throw std::invalid_argument(
          "lrpe: angles of type " + options_.type +
          " need a fixed horizon, since those that change as a text grows cannot be "
          "streamed; give horizon=");
    const int64_t d = shape().dim, heads = options_.spread ? shape().heads : 1;
    const at::Tensor theta = at::empty({heads, angles_}, at::kDouble);
    const double turning = double(options_.unitary() ? d : 2 * angles_);
    const double step = std::numbers::pi / (2 * double(horizon));
    for (int64_t m = 0; m < heads * angles_; ++m) {
      const auto j = double(m + 1);
      theta.data_ptr<double>()[m] =
          options_.type == "b" ? step * j / double(angles_)
          : options_.type == "c"
              ? step / j
              : std::pow(
                    options_.base,
                    -2 * double(m) / (options_.spread ? double(heads * d) : turning));
    }
    return options_.spread ? theta : theta.squeeze(0);
  }

  /// On a grid every axis takes the same first angles.
  at::Tensor per_axis(const at::Tensor& theta, int64_t axes) const {
    if (axes == 1) return theta;
    if (angles_ % axes != 0)
      throw std::invalid_argument("lrpe: expected " + std::to_string(angles_) +
                                  " angles to be a multiple of " +
                                  std::to_string(axes) + " axes");
    return theta.narrow(1, 0, angles_ / axes).repeat({1, axes});
  }

  at::Tensor vectors(const Draw& draw, const Layer& layer) const {
    if (options_.learned_vectors) return layer["v"];
    const auto given = draw.given.find("householder_v");
    if (given == draw.given.end()) return vectors_;
    return given->second.reshape({-1, shape().dim});
  }

  LrpeOptions options_;
  LrpeProjection project_;
  int64_t angles_;  // J
  at::Tensor vectors_;
  std::vector<int64_t> permutation_;
};

void check(const LrpeOptions& o, const HeadShape& shape) {
  const auto expect = [](bool holds, const std::string& text) {
    if (!holds) throw std::invalid_argument("lrpe: expected " + text);
  };
  expect(o.base > 1, "base > 1, got " + std::to_string(o.base));
  expect(o.reflections >= 1, "reflections >= 1, got " + std::to_string(o.reflections));
  expect(o.horizon >= 0, "horizon >= 0, got " + std::to_string(o.horizon));
  expect(o.lambda != "mixed" || shape.dim >= 3,
         "heads of 3 or more coordinates with lambda=mixed, got " +
             std::to_string(shape.dim));
  expect(
      o.type == "a" || (!o.unitary() && !o.permutes()),
      "lambda=rotation or mixed with angles of type " + o.type + ", got " + o.lambda);
  expect(o.type == "a" || (!o.learned_angles && !o.spread),
         "fixed angles, not spread, with type " + o.type);
  expect(!o.permutes() || (!o.learned_angles && !o.spread),
         "fixed angles with lambda=permutation, which has none");
  expect(!o.learned_vectors || o.p == "householder",
         "p=householder with vectors=learned, got " + o.p);
}

std::unique_ptr<Encoding> make_lrpe(Spec& spec, const HeadShape& shape) {
  LrpeOptions o;
  o.lambda = spec.take_choice("lambda", "rotation",
                              {"rotation", "mixed", "permutation", "unitary"});
  o.p = spec.take_choice("p", "householder", LrpeProjection::kinds());
  o.type = spec.take_choice("type", "a", {"a", "b", "c"});
  const bool learnable = !o.permutes() && o.type == "a";
  o.learned_angles = spec.take_choice("angles", learnable ? "learned" : "fixed",
                                      {"fixed", "learned"}) == "learned";
  o.spread = spec.take("spread", false);
  o.base = spec.take("base", o.base);
  o.learned_vectors =
      spec.take_choice("vectors", "fixed", {"fixed", "learned"}) == "learned";
  o.reflections = spec.take("reflections", 1);
  o.decay = take_decay(spec);
  o.horizon = spec.take("horizon", 0);
  check(o, shape);
  return std::make_unique<Lrpe>(shape, o);
}

const RegisterEncoding lrpe_registered({
    .name = "lrpe",
    .summary = "unitary encodings that split: rotations, permutations, complex phases",
    .paper = "arXiv:2307.09270",
    .make = make_lrpe,
    .older = "lrpe:angles=fixed,p=identity",
});

}  // namespace
}  // namespace lagwise
