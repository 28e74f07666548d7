// SineSPE: a query and a key are multiplied by waves that share their randomness, so
// that their product depends, in expectation, on the lag alone.
//
//     P_d(tau) = 1/(2K) sum_k gain_k^2 cos(2 pi f_k tau + offset_k)
//     E <q'_m, k'_n> = sqrt(R/D) sum_d q_d k_d ((1 - g_d) P_d(m - n) + g_d)
//
// with f = sigmoid(frequencies) / 2, gain = softplus(gains), g = sigmoid(gate), g = 0
// where not gated. `scale` is R^(-1/2), so exact attention gets the usual D^(-1/2).
//
// Shapes  q', k' [B, H, N, R]; R = realizations, or (2K+1) D (2K D ungated) if exact.
// Cost    O(N H D R K), without the code [N, H, D, R]; a sketch O(N H D K); the same
//         at any position.
// SineSpeOptions noise gaussian: the paper's. sketch: the features are permuted, signed and
//         folded into R bins. exact: no noise at all. auto: exact where its width is
//         at most 1.5 R, else sketch.
//         init paper: periods of about 110. wide: periods log-uniform from 4 to 512,
//         small offsets, gates nearly shut: position is visible from the first step.
//         decay alibi: waves damped by exp(-|lag| slope), ALiBi's slopes (head_decay.h).
//         shared true: one set of waves and one noise for all layers, as in the paper's
//         music models. false: each layer has its own, as in its Long Range Arena.
// Paper   Liutkus et al., "Relative Positional Encoding for Transformers with Linear
//         Complexity", ICML 2021. https://arxiv.org/abs/2105.08399
// Note    The default of 5 sines is that of the paper's music models.
// Maths   docs/maths/spe.md

#include "lagwise/ops/sine_spe.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"
#include "lagwise/encodings/lags.h"
#include "lagwise/encodings/sine_spe_noise.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

using at::Tensor;

struct SineSpeOptions {
  int64_t sines = 5, realizations = 64;
  bool gated = true, shared = true;
  std::string noise, init, decay;

  int64_t waves() const { return 2 * sines + (gated ? 1 : 0); }
};

[[noreturn]] void refuse_sine_spe(const std::string& what) {
  throw std::invalid_argument("sine_spe: " + what);
}

// ---- initial parameters

/// [H, D, K] of draw(row, k), where `kind` tells frequencies, offsets, gains apart.
template <class DrawOne>
Tensor parameter(const HeadShape& shape, int64_t layer, int64_t sines, int64_t kind,
                 const DrawOne& draw) {
  Tensor x = at::empty({shape.heads, shape.dim, sines}, at::kFloat);
  const Noise noise(shape.seed, streams::kParameters);
  float* to = x.data_ptr<float>();
  for (int64_t h = 0; h < shape.heads; ++h)
    for (int64_t d = 0; d < shape.dim; ++d) {
      const NoiseRow row =
          noise.at({.layer = layer, .head = h, .feature = d, .realisation = kind});
      for (int64_t k = 0; k < sines; ++k) *to++ = static_cast<float>(draw(row, k));
    }
  return x;
}

double normal(const NoiseRow& row, int64_t k) { return row.normal(k); }

Tensor initial_frequencies(const HeadShape& shape, int64_t layer,
                           const SineSpeOptions& o) {
  if (o.init == "paper")
    return parameter(shape, layer, o.sines, 0,
                     [](const auto& row, int64_t k) { return row.normal(k) - 4; });
  return parameter(shape, layer, o.sines, 0, [](const auto& row, int64_t k) {
    const double period = 4 * std::pow(512.0 / 4, row.uniform(k));
    const double twice = 2 / period;  // sigmoid(raw) = 2 f
    return std::log(twice / (1 - twice));
  });
}

/// Of the waves of one layer, [H, D, K] each. Gains are 2 g / sqrt(|g|), the norm over
/// the sines: its square root, as in the authors' code.
Parameters initial_waves(const HeadShape& shape, int64_t layer,
                         const SineSpeOptions& o) {
  const Tensor offsets = parameter(shape, layer, o.sines, 1, normal);
  const Tensor g = parameter(shape, layer, o.sines, 2, normal);
  return {{"frequencies", initial_frequencies(shape, layer, o)},
          {"offsets", offsets * (o.init == "paper" ? 1.0 : 0.1)},
          {"gains", 2 * g / g.norm(2, {2}, true).sqrt()}};
}

// ---- the encoding

Traits traits_of(const SineSpeOptions& o, int64_t width, int64_t features) {
  Traits traits;
  traits.exact = traits.linear_causal = traits.linear_full = true;
  traits.stage = Traits::Stage::before_map;
  traits.by_lag = traits.decays = o.decay != "none";
  traits.stochastic = o.noise == "gaussian" || width < features;
  return traits;
}

/// The waves in double, and their noise; shared between layers, or of one.
struct FormedWaves : Prepared {
  int64_t bytes() const override {
    return bytes_of(frequency) + bytes_of(offset) + bytes_of(gain) + bytes_of(z);
  }

  Tensor frequency, offset;
  Tensor gain;  ///< times s
  Tensor z;     ///< undefined where it is not Gaussian
};

class SineSpe : public Encoding {
 public:
  SineSpe(const HeadShape& shape, const SineSpeOptions& options)
      : Encoding(
            traits_of(options, width_of(shape, options), options.waves() * shape.dim),
            shape),
        options_(options),
        noise_({shape.heads, shape.dim, options.sines, width_of(shape, options),
                options.gated, options.shared}) {
    if (options.shared) waves_ = initial_waves(shape, 0, options);
  }

  int64_t width() const override { return width_of(shape(), options_); }

  Parameters shared() override { return waves_; }

  Parameters layer(int64_t index, int64_t) override {
    Parameters own;
    if (!options_.shared) own = initial_waves(shape(), index, options_);
    if (!options_.gated) return own;
    Tensor gate = at::empty({shape().heads, shape().dim}, at::kFloat);
    const Noise noise(shape().seed, streams::kParameters);
    float* to = gate.data_ptr<float>();
    for (int64_t h = 0; h < shape().heads; ++h)
      for (int64_t d = 0; d < shape().dim; ++d) {
        const NoiseAt at = {.layer = index, .head = h, .feature = d, .realisation = 3};
        *to++ = options_.init == "paper" ? static_cast<float>(noise.at(at).normal(0))
                                         : -2.0f;
      }
    own.emplace_back("gate", gate);
    return own;
  }

  Code code(const Placement&, const Draw& draw, int64_t, int64_t,
            const Code*) override {
    if (options_.noise != "gaussian" && draw.given.count("sine_spe.z") > 0)
      refuse_sine_spe("expected no sine_spe.z with noise=" + options_.noise +
                      ", got one");
    if (!options_.shared) return {draw};
    return {draw, std::make_shared<FormedWaves>(formed({0, 1, waves_}, draw))};
  }

  Encoded encode(const Tensor& q, const Tensor& k, const Code& code, const Layer& layer,
                 const Placement& at) override {
    check(at);
    const auto* const shared = code.as<FormedWaves>();
    const FormedWaves formed =
        shared != nullptr ? *shared : this->formed(layer, code.draw);
    const auto waves = waves_of(formed, layer);
    const auto mixing = mixing_of(formed.z, code.draw, layer, q.scalar_type());
    const Tensor q_at = positions(at.query_at, at.query_start, q.size(2));
    const bool together = !at.query_at.defined() && !at.key_at.defined() &&
                          at.query_start == at.key_start && q.size(2) == k.size(2);
    const Tensor k_at = together ? q_at : positions(at.key_at, at.key_start, k.size(2));
    const auto [q_out, k_out] = ops::sine_spe(q, k, waves, mixing, q_at, k_at);
    Encoded out{q_out, k_out, 1 / std::sqrt(static_cast<double>(width()))};
    if (options_.decay != "none")
      fade("sine_spe", out, head_decay(options_.decay, shape().heads, 0, 1), at);
    return out;
  }

  std::optional<OneTokenPlace> one_token(const Layer& layer, const Draw& draw,
                                         int64_t) override {
    using ops::numbers_of;
    const FormedWaves formed =
        this->formed(options_.shared ? Layer{0, 1, waves_} : layer, draw);
    const ops::SineWaves waves = waves_of(formed, layer);
    const ops::SineMixing mixing = mixing_of(formed.z, draw, layer, at::kFloat);
    OneTokenPlace place = as_they_are();
    place.sines = options_.sines;
    place.turns = numbers_of<double>(waves.frequency);
    place.phase = numbers_of<double>(waves.phase / (2 * std::numbers::pi));
    place.amplitude = numbers_of<float>(waves.amplitude);
    place.constant = numbers_of<float>(waves.constant);
    place.noise = numbers_of<float>(mixing.z);
    place.gate_noise = numbers_of<float>(mixing.gate);
    place.fold = numbers_of<int64_t>(mixing.fold);
    if (options_.decay != "none")
      place.log_fade =
          numbers_of<float>(head_decay(options_.decay, shape().heads, 0, 1));
    return place;
  }

 private:
  static int64_t width_of(const HeadShape& shape, const SineSpeOptions& o) {
    return o.noise == "exact" ? shape.dim * o.waves() : o.realizations;
  }

  /// s, which every wave is multiplied by: 1 / (sqrt(2K) (R D)^(1/4)) before Gaussian
  /// noise, and sqrt(R) times that before a fold, whose matrix has rows of norm 1.
  double strength() const {
    const double r = static_cast<double>(width());
    const double size = r * static_cast<double>(shape().dim);
    const double s = 1 / (std::sqrt(2.0 * static_cast<double>(options_.sines)) *
                          std::pow(size, 0.25));
    return options_.noise == "gaussian" ? s : s * std::sqrt(r);
  }

  void check(const Placement& at) const {
    if (at.grid.size() > 1)
      refuse_sine_spe("expected positions on a line, got a grid of " +
                      std::to_string(at.grid.size()) + " axes");
    if (at.off_grid != 0)
      refuse_sine_spe("expected every row to have a position, got " +
                      std::to_string(at.off_grid) + " off the grid");
  }

  FormedWaves formed(const Layer& of, const Draw& draw) {
    const Tensor& raw = of["frequencies"];
    const Tensor gain = at::softplus(of["gains"].to(at::kDouble)) * strength();
    const Tensor noise = options_.noise == "gaussian"
                             ? noise_.code(draw, of.index, raw.scalar_type())
                             : Tensor();
    FormedWaves waves;
    waves.frequency = at::sigmoid(raw.to(at::kDouble)) / 2;
    waves.offset = of["offsets"].to(at::kDouble);
    waves.gain = gain;
    waves.z = noise;
    return waves;
  }

  /// sqrt(1 - g) and sqrt(g) through the logarithm of the sigmoid: their gradients stay
  /// finite however far a gate is open or shut.
  ops::SineWaves waves_of(const FormedWaves& w, const Layer& layer) const {
    if (!options_.gated) return {w.frequency, w.offset, w.gain, {}};
    const Tensor raw = layer["gate"].to(at::kDouble);
    const auto root = [](const Tensor& x) { return (at::log_sigmoid(x) / 2).exp(); };
    const double constant =
        strength() * std::sqrt(2.0 * static_cast<double>(options_.sines));
    return {w.frequency, w.offset, w.gain * root(-raw).unsqueeze(2),
            root(raw) * constant};
  }

  ops::SineMixing mixing_of(const Tensor& z, const Draw& draw, const Layer& layer,
                            at::ScalarType type) {
    ops::SineMixing mixing;
    mixing.width = width();
    if (options_.noise == "gaussian") {
      mixing.z = z.to(type);
      if (options_.gated) mixing.gate = noise_.gate(draw, layer.index, type).to(type);
    } else if (options_.noise == "sketch") {
      mixing.fold = noise_.fold(draw, layer.index);
    } else {
      mixing.fold = noise_.plain_fold();
    }
    return mixing;
  }

  SineSpeOptions options_;
  SineSpeNoise noise_;
  Parameters waves_;  // of all layers, raw; empty: each has its own
};

std::unique_ptr<Encoding> make_sine_spe(Spec& spec, const HeadShape& shape) {
  SineSpeOptions o;
  o.sines = spec.take("sines", o.sines);
  o.realizations = spec.take("realizations", o.realizations);
  o.gated = spec.take("gated", o.gated);
  o.noise =
      spec.take_choice("noise", "gaussian", {"gaussian", "sketch", "exact", "auto"});
  o.init = spec.take_choice("init", "paper", {"paper", "wide"});
  o.decay = spec.take_choice("decay", "none", {"none", "alibi"});
  o.shared = spec.take("shared", o.shared);
  if (o.sines < 1)
    refuse_sine_spe("expected sines >= 1, got " + std::to_string(o.sines));
  if (o.realizations < 1)
    refuse_sine_spe("expected realizations >= 1, got " +
                    std::to_string(o.realizations));
  if (o.noise == "auto") {
    const double exact = static_cast<double>(o.waves() * shape.dim);
    o.noise = exact <= 1.5 * static_cast<double>(o.realizations) ? "exact" : "sketch";
  }
  return std::make_unique<SineSpe>(shape, o);
}

const RegisterEncoding sine_spe_registered({
    .name = "sine_spe",
    .summary = "waves with shared randomness on queries and keys (SineSPE), gated",
    .paper = "arXiv:2105.08399",
    .make = make_sine_spe,
});

}  // namespace
}  // namespace lagwise
