// The runtime against the definition of a decoder: all tokens so far, in f64, with no
// state, no panels and no cleverness.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>

#include "lagwise/runtime/model.h"
#include "lagwise/runtime/testing_model.h"

namespace lagwise::runtime {
namespace {

using namespace lagwise::testing;
using Row = std::vector<double>;
using Matrix = std::vector<Row>;

double dot(const Row& a, const Row& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Reads what a model's file holds, and computes logits by what it means.
class Reference {
 public:
  Reference(data::Bytes bytes, const Plan& plan) : file_("m", bytes), plan_(plan) {}

  /// After the last of the tokens.
  Row logits(const std::vector<int64_t>& tokens) const {
    Matrix x;
    const double root = std::sqrt(static_cast<double>(plan_.dim));
    const Matrix embed = matrix("embed", plan_.vocabulary, plan_.dim);
    for (const int64_t token : tokens) {
      x.push_back(embed[static_cast<size_t>(token)]);
      for (double& each : x.back()) each *= root;
    }
    for (size_t i = 0; i < plan_.one.layers.size(); ++i) layer(i, x);
    const Row last = normed("norm", x.back());
    Row y;
    for (const Row& word : embed) y.push_back(dot(word, last));
    return y;
  }

 private:
  /// Tensors with equal numbers are stored once.
  const float* floats(const std::string& name) const {
    const data::StoredTensor* tensor = file_.find(name);
    if (tensor == nullptr)
      tensor = file_.find(nlohmann::json::parse(file_.metadata().at("same"))
                              .at(name)
                              .get<std::string>());
    return reinterpret_cast<const float*>(tensor->bytes.data());
  }

  /// W [outputs, columns], which stands in panels of 16 outputs.
  Matrix matrix(const std::string& name, int64_t outputs, int64_t columns) const {
    const float* const from = floats(name + ".weight");
    Matrix w(static_cast<size_t>(outputs), Row(static_cast<size_t>(columns)));
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t c = 0; c < columns; ++c)
        w[static_cast<size_t>(o)][static_cast<size_t>(c)] =
            from[(o / 16 * columns + c) * 16 + o % 16];
    return w;
  }

  Row dense(const std::string& name, int64_t outputs, const Row& x) const {
    const Matrix w = matrix(name, outputs, std::ssize(x));
    const float* const bias = floats(name + ".bias");
    Row y;
    for (size_t o = 0; o < w.size(); ++o)
      y.push_back(dot(w[o], x) + static_cast<double>(bias[o]));
    return y;
  }

  static Row centred(Row x) {
    const double mean =
        std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    for (double& each : x) each -= mean;
    return x;
  }

  static Row unit_square(Row x, double eps) {
    const double size = std::sqrt(dot(x, x) / static_cast<double>(x.size()) + eps);
    for (double& each : x) each /= size;
    return x;
  }

  Row normed(const std::string& name, const Row& x) const {
    const bool layer = plan_.norm == "layer";
    Row y = unit_square(layer ? centred(x) : x, plan_.norm_eps);
    const float* const gain = floats(name + ".weight");
    const float* const bias = layer ? floats(name + ".bias") : nullptr;
    for (size_t j = 0; j < y.size(); ++j) {
      y[j] *= static_cast<double>(gain[j]);
      if (layer) y[j] += static_cast<double>(bias[j]);
    }
    return y;
  }

  void layer(size_t index, Matrix& x) const {
    const std::string at = "layers." + std::to_string(index) + ".";
    const auto add = [](Row& to, const Row& y) {
      for (size_t j = 0; j < to.size(); ++j) to[j] += y[j];
    };
    const Matrix heads = attention(at, plan_.one.layers[index], x);
    for (size_t t = 0; t < x.size(); ++t) {
      add(x[t], dense(at + "out", plan_.dim, heads[t]));
      Row wide =
          dense(at + "feed_in", plan_.feed_forward, normed(at + "feed_norm", x[t]));
      for (double& each : wide) each *= 0.5 * std::erfc(-each / std::sqrt(2.0));
      add(x[t], dense(at + "feed_out", plan_.dim, wide));
    }
  }

  /// The results of all heads side by side, of every token.
  Matrix attention(const std::string& at, const OneTokenLayer& of,
                   const Matrix& x) const {
    const auto columns = static_cast<size_t>(plan_.mixed_columns());
    const auto values = static_cast<size_t>(plan_.value_columns());
    const float* const taps = floats(at + "taps");
    Matrix mixed, results(x.size(), Row(values)), fade(x.size()), write(x.size());
    for (size_t t = 0; t < x.size(); ++t) {
      const Row y = normed(at + "attention_norm", x[t]);
      mixed.push_back(
          dense(at + "mixed", plan_.mixed_columns() + plan_.value_columns(), y));
      const Matrix gates = matrix(at + "gates", 2 * plan_.heads, plan_.dim);
      const float* const bias = floats(at + "gates.bias");
      const float* const rate = floats(at + "forget_rate");
      for (size_t h = 0; h < static_cast<size_t>(plan_.heads); ++h) {
        const double open = dot(gates[h], y) + static_cast<double>(bias[h]);
        fade[t].push_back(of.memory.forgets ? -static_cast<double>(rate[h]) *
                                                  std::log1p(std::exp(open))
                                            : 0.0);
        const double strength = dot(gates[h + static_cast<size_t>(plan_.heads)], y);
        write[t].push_back(1 / (1 + std::exp(-strength)));
      }
    }
    Matrix convolved(x.size(), Row(columns));
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t c = 0; c < columns; ++c)
        for (size_t back = 0; back < 3 && back <= t; ++back)
          convolved[t][c] +=
              static_cast<double>(taps[back * columns + c]) * mixed[t - back][c];
    for (int64_t h = 0; h < plan_.heads; ++h)
      head(of, h, convolved, fade, write, results);
    if (of.memory.norm == "layer_concat")
      for (Row& row : results) row = unit_square(centred(row), of.memory.norm_eps);
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t j = 0; j < values; ++j) {
        const double gate = mixed[t][columns + j];
        results[t][j] *= gate / (1 + std::exp(-gate));
      }
    return results;
  }

  struct Key {
    Row turned, plain;
  };

  /// What the score is made of: features that were turned by the position, and those of
  /// the denominator.
  Key encoded(const OneTokenLayer& of, int64_t head, Row x, size_t position,
              bool is_query) const {
    if (of.place.after_map) x = features(of.memory.map, x);
    if (of.place.sines > 0) x = waved(of.place, head, x, position, is_query);
    Key key{x, x};
    const auto planes = static_cast<size_t>(of.place.planes);
    const int64_t first = of.place.frequency.size() > of.place.planes
                              ? head * of.place.planes
                              : int64_t{0};
    for (size_t j = 0; j < planes; ++j) {
      const double angle = static_cast<double>(position) *
                           of.place.frequency[first + static_cast<int64_t>(j)];
      const double a = x[j], b = x[j + planes];
      key.turned[j] = a * std::cos(angle) - b * std::sin(angle);
      key.turned[j + planes] = a * std::sin(angle) + b * std::cos(angle);
    }
    if (!of.place.after_map) {
      key.turned = features(of.memory.map, key.turned);
      key.plain = key.turned;
    }
    if (of.memory.rewrites) {
      const double size = std::sqrt(dot(key.turned, key.turned) + 1e-12);
      for (double& each : key.turned) each /= size;
    }
    return key;
  }

  /// Each number times cosines and sines of its own waves and a constant, which become W
  /// numbers: by noise, or by folding each into one of them.
  static Row waved(const OneTokenPlace& place, int64_t head, const Row& x,
                   size_t position, bool is_query) {
    const auto d = std::ssize(x);
    const bool gated = !place.constant.empty();
    const int64_t waves = 2 * place.sines, all = waves + (gated ? 1 : 0);
    Row y(static_cast<size_t>(place.width));
    const auto add = [&](int64_t row, int64_t wave, double value) {
      if (!place.fold.empty()) {
        const int64_t bin = place.fold[row * all + wave];
        y[static_cast<size_t>(std::abs(bin) - 1)] += bin < 0 ? -value : value;
        return;
      }
      for (int64_t r = 0; r < place.width; ++r)
        y[static_cast<size_t>(r)] +=
            value * static_cast<double>(
                        wave < waves
                            ? place.noise[(row * waves + wave) * place.width + r]
                            : place.gate_noise[row * place.width + r]);
    };
    for (int64_t i = 0; i < d; ++i) {
      const int64_t row = head * d + i;
      const double value = x[static_cast<size_t>(i)];
      for (int64_t k = 0; k < place.sines; ++k) {
        const int64_t at = row * place.sines + k;
        const double turns = place.turns[at] * static_cast<double>(position) +
                             (is_query ? place.phase[at] : 0.0);
        const double size = value * static_cast<double>(place.amplitude[at]);
        add(row, 2 * k, size * std::cos(2 * std::numbers::pi * turns));
        add(row, 2 * k + 1, size * std::sin(2 * std::numbers::pi * turns));
      }
      if (gated) add(row, waves, value * static_cast<double>(place.constant[row]));
    }
    return y;
  }

  static Row features(const OneTokenMap& map, const Row& x) {
    Row y;
    if (map.random.empty()) {
      for (const double each : x) y.push_back(each > 0 ? each + 1 : std::exp(each));
      return y;
    }
    const double scale = std::pow(static_cast<double>(x.size()), -0.25);
    for (int64_t m = 0; m < map.directions.size() / std::ssize(x); ++m) {
      double sum = -scale * scale * dot(x, x) / 2;
      for (size_t j = 0; j < x.size(); ++j)
        sum += scale * x[j] *
               static_cast<double>(
                   map.directions[m * std::ssize(x) + static_cast<int64_t>(j)]);
      y.push_back(std::exp(sum));
    }
    return y;
  }

  void head(const OneTokenLayer& of, int64_t h, const Matrix& qkv, const Matrix& fade,
            const Matrix& write, Matrix& results) const {
    const int64_t d = plan_.key_dim, e = plan_.value_dim, queries = plan_.heads * d;
    const auto part = [&](size_t t, int64_t from, int64_t count) {
      return Row(qkv[t].begin() + from, qkv[t].begin() + from + count);
    };
    const auto own = static_cast<size_t>(h);
    Matrix written;  // what each token leaves behind, under its key
    std::vector<Key> keys;
    for (size_t t = 0; t < qkv.size(); ++t) {
      keys.push_back(encoded(of, h, part(t, queries + h * d, d), t, false));
      const Key query = encoded(of, h, part(t, h * d, d), t, true);
      written.push_back(part(t, 2 * queries + h * e, e));
      const auto recalled = [&](const Row& by, size_t until) {
        Row sum(static_cast<size_t>(e));
        double between = 0;
        for (size_t s = until; s-- > 0;) {
          if (s + 1 <= t) between += fade[s + 1][own];
          const double weight = dot(by, keys[s].turned) * std::exp(between);
          for (size_t j = 0; j < sum.size(); ++j) sum[j] += weight * written[s][j];
        }
        return sum;
      };
      if (of.memory.rewrites) {
        const Row known = recalled(keys[t].turned, t);
        for (size_t j = 0; j < known.size(); ++j)
          written[t][j] = write[t][own] * (written[t][j] - known[j]);
      }
      Row out = recalled(query.turned, t + 1);
      if (of.memory.divides) {
        double sum = of.memory.eps, between = 0;
        const bool apart = of.place.separate;
        for (size_t s = t + 1; s-- > 0;) {
          if (s + 1 <= t) between += fade[s + 1][own];
          sum += std::exp(between) * (apart ? dot(query.plain, keys[s].plain)
                                            : dot(query.turned, keys[s].turned));
        }
        for (double& each : out) each /= sum;
      }
      if (of.memory.norm == "rms_head") out = unit_square(out, of.memory.norm_eps);
      std::copy(out.begin(), out.end(), results[t].begin() + h * e);
    }
  }

  data::Safetensors file_;
  const Plan& plan_;
};

void expect_same(const Plan& plan) {
  const auto bytes = small_writer(plan).bytes();
  const Reference reference(bytes, plan);
  const auto model = Model::open("m", bytes);
  const auto state = model->start();
  std::vector<int64_t> text;
  for (const int64_t token : {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 20, 0}) {
    text.push_back(token);
    model->step(*state, token);
    const Row expected = reference.logits(text);
    for (size_t j = 0; j < expected.size(); ++j)
      ASSERT_NEAR(state->logits()[j], expected[j], 2e-4)
          << "token " << j << " after " << text.size();
  }
}

TEST(RuntimeReference, OfGatesRotationsAndConvolutions) { expect_same(small_plan()); }

TEST(RuntimeReference, OfHeadsThatTurnAtTheirOwnPace) {
  Plan plan = small_plan();
  for (OneTokenLayer& layer : plan.one.layers)
    layer.place.frequency = std::vector<double>{1.0, 0.01, 0.5, 0.3, 2.0, 0.7};
  expect_same(plan);
}

TEST(RuntimeReference, OfTheDeltaRule) {
  Plan plan = small_plan();
  for (OneTokenLayer& layer : plan.one.layers) {
    layer.memory.rewrites = true, layer.memory.divides = false;
    layer.place.separate = false;
  }
  expect_same(plan);
}

TEST(RuntimeReference, OfNormsThatCentre) {
  Plan plan = small_plan();
  plan.norm = "layer";
  for (OneTokenLayer& layer : plan.one.layers) layer.memory.norm = "layer_concat";
  expect_same(plan);
}

/// SineSPE: D = 4 numbers of 3 heads with 2 waves each become 5.
Plan waved_plan(bool gated) {
  Plan plan = small_plan();
  for (OneTokenLayer& layer : plan.one.layers) {
    OneTokenPlace& place = layer.place;
    place.after_map = place.separate = false;
    place.planes = 0, place.frequency = {};
    place.sines = 2, place.width = 5;
    std::vector<double> turns, phase;
    for (int i = 0; i < 24; ++i)
      turns.push_back(0.013 * (i + 1)), phase.push_back(0.07 * i);
    place.turns = turns, place.phase = phase;
    place.amplitude = waves(24, 0.9, 1.5);
    if (gated) place.constant = waves(12, 0.4, 0.8);
  }
  return plan;
}

TEST(RuntimeReference, OfWavesWithNoise) {
  for (const bool gated : {false, true}) {
    Plan plan = waved_plan(gated);
    for (OneTokenLayer& layer : plan.one.layers) {
      layer.place.noise = waves(3 * 4 * 4 * 5, 1.7, 1.0);
      if (gated) layer.place.gate_noise = waves(3 * 4 * 5, 2.1, 1.0);
    }
    expect_same(plan);
  }
}

TEST(RuntimeReference, OfWavesThatAreFolded) {
  for (const bool gated : {false, true}) {
    Plan plan = waved_plan(gated);
    std::vector<int64_t> fold;
    for (int64_t i = 0; i < (gated ? 60 : 48); ++i)
      fold.push_back((i % 3 == 0 ? -1 : 1) * (1 + 7 * i % 5));
    for (OneTokenLayer& layer : plan.one.layers) layer.place.fold = fold;
    expect_same(plan);
  }
}

TEST(RuntimeReference, OfRandomFeatures) {
  Plan plan = small_plan();
  for (OneTokenLayer& layer : plan.one.layers) {
    layer.place.after_map = layer.place.separate = false;
    layer.memory.map.pointwise = "none", layer.memory.map.random = "positive";
    layer.memory.map.directions = waves(20, 1.3, 8.0);
    layer.memory.eps = 0;
  }
  expect_same(plan);
}

}  // namespace
}  // namespace lagwise::runtime
