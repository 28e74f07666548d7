#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/core/numbers.h"

namespace lagwise {

// What a model does to one token at position p, besides multiplying by matrices, as
// plain data. Encodings and attentions hand it over (Encoding::one_token,
// Mixer::one_token), `lagwise export` writes it to a file, and lagwise/runtime works
// by it. Nobody between them knows an encoding by name.
//
// C is the width of a model, H its heads, D and E the widths of keys and values of a
// head, W the width of encoded queries and keys. Empty means: not done.
//
// `each_number` of a struct visits its numbers by name, `each_setting` the rest: that
// is all that writing and reading need to know.

/// What is added to the row x [C] of a token before the first layer:
///
///     x + table[p];   x[sine_at_a] + sin(p f_a), x[cosine_at_a] + cos(p f_a)
struct OneTokenInput {
  Numbers<float> table;                 ///< [positions, C]: none stands past its end
  Numbers<double> frequency;            ///< [A], radians per position
  Numbers<int64_t> sine_at, cosine_at;  ///< [A], channels; -1: nowhere

  bool empty() const { return table.empty() && frequency.empty(); }
};

/// What is done to a query and a key of a head, in this order:
///
///     multiply by `matrix`, turn in planes        (rotations)
///     multiply by waves, mix what comes out       (SineSPE)
///     let the state fade
struct OneTokenPlace {
  int64_t width = 0;       ///< W
  bool after_map = false;  ///< acts on features, not on what they are made of
  bool separate = false;   ///< the denominator is formed from features before it

  Numbers<float> matrix;  ///< [D, W]: x P

  /// Each of `blocks` equal parts of the row is turned in planes by the angles p f_j,
  /// and multiplied by turn_scale: kernels/rotate.h.
  int64_t planes = 0;         ///< of a block
  Numbers<double> frequency;  ///< [1 or H, planes], radians per position
  bool interleaved = false;   ///< planes (2j, 2j+1), else (j, j + P)
  int64_t blocks = 1;
  double turn_scale = 1;

  /// u_2k = x_d a_k cos(2 pi (f_k p + phase_k)), u_2k+1 the same with sin, of D K waves;
  /// then x_d constant_d. Keys have phase 0. The features u of a head become W numbers:
  /// by dense noise, u z + (x constant) gate, or folded, feature i into bin
  /// |fold_i| - 1 with the sign of fold_i.
  int64_t sines = 0;                 ///< K
  Numbers<double> turns, phase;      ///< [H, D, K]: f and phase in whole turns
  Numbers<float> amplitude;          ///< [H, D, K]
  Numbers<float> constant;           ///< [H, D]
  Numbers<float> noise, gate_noise;  ///< z [H, D 2K, W], gate [H, D, W]
  Numbers<int64_t> fold;             ///< [H, D P], P = 2K, or 2K + 1 with a constant

  Numbers<float> log_fade;  ///< [H] or [H, W]: of the state's factor per step
};

/// How encoded rows become features: number by number, then by random directions or
/// by a quarter of a cosine.
struct OneTokenMap {
  std::string pointwise = "none";  ///< a name of kernels/feature_map.h
  double offset = 0;
  std::string random;         ///< positive, two_sided, relu: kernels/favor.h
  Numbers<float> directions;  ///< [m, its width]
  double random_offset = 0;
  int64_t horizon = 0;  ///< y -> [y sin a, y cos a], a = pi (p + 1) / (2 horizon)
};

/// How attention remembers: lagwise/attention/linear.h says it in full.
struct OneTokenMemory {
  OneTokenMap map;
  bool divides = true;
  double eps = 0;
  bool clamp = false;                      ///< max(den, eps), not den + eps
  bool forgets = false, rewrites = false;  ///< gates of the layer's input
  int64_t convolution = 0;                 ///< tokens
  bool gates_output = false;
  std::string norm = "none";  ///< rms_head, layer_concat
  double norm_eps = 0;
  Numbers<float> norm_gain;       ///< [H, E]
  Numbers<float> q_bias, k_bias;  ///< [H, D]
};

struct OneTokenLayer {
  OneTokenPlace place;
  OneTokenMemory memory;
};

struct OneTokenModel {
  std::vector<OneTokenInput> inputs;
  std::vector<OneTokenLayer> layers;
};

template <class Visit>
void each_number(OneTokenInput& x, const Visit& visit) {
  visit("table", x.table), visit("frequency", x.frequency);
  visit("sine_at", x.sine_at), visit("cosine_at", x.cosine_at);
}

template <class Visit>
void each_number(OneTokenLayer& x, const Visit& visit) {
  OneTokenPlace& p = x.place;
  visit("matrix", p.matrix), visit("frequency", p.frequency);
  visit("turns", p.turns), visit("phase", p.phase);
  visit("amplitude", p.amplitude), visit("constant", p.constant);
  visit("noise", p.noise), visit("gate_noise", p.gate_noise), visit("fold", p.fold);
  visit("log_fade", p.log_fade);
  OneTokenMemory& m = x.memory;
  visit("directions", m.map.directions), visit("norm_gain", m.norm_gain);
  visit("q_bias", m.q_bias), visit("k_bias", m.k_bias);
}

template <class Visit>
void each_setting(OneTokenLayer& x, const Visit& visit) {
  OneTokenPlace& p = x.place;
  visit("width", p.width), visit("after_map", p.after_map);
  visit("separate", p.separate), visit("interleaved", p.interleaved);
  visit("planes", p.planes), visit("blocks", p.blocks),
      visit("turn_scale", p.turn_scale), visit("sines", p.sines);
  OneTokenMemory& m = x.memory;
  visit("map", m.map.pointwise), visit("offset", m.map.offset);
  visit("random", m.map.random), visit("random_offset", m.map.random_offset);
  visit("horizon", m.map.horizon), visit("divides", m.divides), visit("eps", m.eps);
  visit("clamp", m.clamp), visit("forgets", m.forgets), visit("rewrites", m.rewrites);
  visit("convolution", m.convolution), visit("gates_output", m.gates_output);
  visit("norm", m.norm), visit("norm_eps", m.norm_eps);
}

}  // namespace lagwise
