// What SineSPE estimates, and how well: moments over draws against the closed forms of
// docs/maths/spe.md.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

using at::Tensor;

Tensor parameter(Encoding& encoding, const std::string& name) {
  for (const auto& [key, value] : encoding.shared())
    if (key == name) return value.to(at::kDouble);
  throw std::logic_error("no parameter " + name);
}

/// (1 - g) P_d(tau) + g of one head: [D]. An undefined gate: not gated.
Tensor expected_kernel(Encoding& encoding, const Tensor& gate, int64_t head,
                       double lag) {
  const Tensor f = parameter(encoding, "frequencies")[head].sigmoid() / 2;
  const Tensor gain = at::softplus(parameter(encoding, "gains")[head]);
  const Tensor angle = f * (2 * std::numbers::pi * lag);
  const Tensor offset = parameter(encoding, "offsets")[head];
  const Tensor p = (gain * gain * (angle + offset).cos()).mean(1) / 2;
  if (!gate.defined()) return p;
  const Tensor g = gate[head].to(at::kDouble).sigmoid();
  return (1 - g) * p + g;
}

/// The variance of a code at one position, gated: [D].
Tensor code_variance(Encoding& encoding, const Tensor& gate, int64_t head) {
  const Tensor gain = at::softplus(parameter(encoding, "gains")[head]);
  const Tensor v = (gain * gain).mean(1) / 2;
  if (!gate.defined()) return v;
  const Tensor g = gate[head].to(at::kDouble).sigmoid();
  return (1 - g) * v + g;
}

struct Pair {
  Tensor q, k;  // [1, H, 1, D], double
};

Pair random_pair(int64_t heads, int64_t dim, uint64_t seed) {
  at::manual_seed(seed);
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  return {at::randn({1, heads, 1, dim}, wide), at::randn({1, heads, 1, dim}, wide)};
}

Layer fresh_layer(Encoding& encoding, int64_t index = 0) {
  return {index, 4, encoding.layer(index, 4)};
}

/// scale <q', k'> of head 0, the query at m and the key at n.
double logit(Encoding& encoding, const Pair& x, const Layer& layer, int64_t m,
             int64_t n, const Draw& draw) {
  const Encoded e =
      encode_once(encoding, x.q, x.k, {.query_start = m, .key_start = n}, draw, &layer);
  return e.scale * (e.q * e.k).sum(-1).flatten()[0].item<double>();
}

// Without noise the logit is the template, at any lag and anywhere.
TEST(SineSpeMoments, IsTheTemplateItselfWhenExact) {
  for (const char* text :
       {"sine_spe:sines=2,noise=exact", "sine_spe:sines=2,noise=exact,gated=false",
        "sine_spe:sines=2,noise=sketch,realizations=40",  // R >= F: nothing collides
        "sine_spe:sines=2,noise=auto,realizations=40",
        "sine_spe:sines=3,noise=exact,init=wide"}) {
    SCOPED_TRACE(text);
    const auto encoding = make_encoding(text, {.heads = 1, .dim = 8, .seed = 5});
    EXPECT_FALSE(encoding->traits().stochastic);
    const Layer layer = fresh_layer(*encoding);
    const Tensor gate = layer.own.empty() ? Tensor() : layer["gate"];
    const Pair x = random_pair(1, 8, 1);
    for (const int64_t m : {0, 300, 1000000}) {
      for (const int64_t lag : {-7, 0, 1, 250}) {
        const Tensor kernel = expected_kernel(*encoding, gate, 0, double(lag));
        const double want =
            (x.q.flatten() * x.k.flatten() * kernel).sum().item<double>() /
            std::sqrt(8.0);
        EXPECT_NEAR(logit(*encoding, x, layer, m + lag, m, {}), want, 1e-8);
      }
    }
  }
}

/// Draws made at once: heads draw independently, so heads with the same parameters,
/// queries and keys are as many draws.
constexpr int64_t kHeads = 500, kSteps = 8, kDraws = kHeads * kSteps;

/// An encoding and a layer whose heads all have the parameters of head 0.
struct Alike {
  explicit Alike(const std::string& text)
      : encoding(make_encoding(text, {.heads = kHeads, .dim = 4, .seed = 7})),
        layer(fresh_layer(*encoding)) {
    Parameters all = encoding->shared();
    all.insert(all.end(), layer.own.begin(), layer.own.end());
    for (auto& [name, x] : all) x.copy_(x.slice(0, 0, 1).clone().expand_as(x));
  }
  Tensor gate() const { return layer.own.empty() ? Tensor() : layer["gate"]; }

  std::unique_ptr<Encoding> encoding;
  Layer layer;
};

/// Mean and variance of the logit at lag 13 over the draws of one seed.
struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const Alike& heads, const Pair& x, uint64_t seed) {
  const Tensor q = x.q.expand({1, kHeads, 1, 4}), k = x.k.expand({1, kHeads, 1, 4});
  std::vector<Tensor> logits;
  for (int64_t step = 0; step < kSteps; ++step) {
    const Encoded e =
        encode_once(*heads.encoding, q, k, {.query_start = 20, .key_start = 7},
                    {.seed = seed, .step = step}, &heads.layer);
    logits.push_back((e.q * e.k).sum(-1).flatten() * e.scale);
  }
  const Tensor all = at::cat(logits);
  return {all.mean().item<double>(), all.var().item<double>()};
}

/// What A.6 of the derivation says: mean c / sqrt(D), variance (s_q s_k + c^2) / (R D).
Moments gaussian_moments(Encoding& encoding, const Pair& x, const Tensor& gate,
                         double lag) {
  const double dim = double(x.q.size(3)), r = double(encoding.width());
  const Tensor q = x.q.flatten(), k = x.k.flatten();
  const Tensor v = code_variance(encoding, gate, 0);
  const double c =
      (q * k * expected_kernel(encoding, gate, 0, lag)).sum().item<double>();
  const double sq = (q * q * v).sum().item<double>();
  const double sk = (k * k * v).sum().item<double>();
  return {c / std::sqrt(dim), (sq * sk + c * c) / (r * dim)};
}

TEST(SineSpeMoments, HasTheMomentsOfTheDerivationOverDraws) {
  for (const char* text : {"sine_spe:sines=2,realizations=8",
                           "sine_spe:sines=2,realizations=8,gated=false"}) {
    const Alike heads(text);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Pair x = random_pair(1, 4, seed);
      const Moments want = gaussian_moments(*heads.encoding, x, heads.gate(), 13);
      const Moments got = moments_of(heads, x, seed);
      EXPECT_NEAR(got.mean, want.mean, 5 * std::sqrt(want.variance / kDraws)) << seed;
      // The logit's tails are heavier than normal: 5 sigma of a kurtosis up to 9.
      EXPECT_NEAR(got.variance / want.variance, 1, 5 * std::sqrt(8.0 / kDraws)) << seed;
    }
  }
}

// Var = p [(|u|^2 |w|^2 - d) + (c^2 - d)] with p the chance that two features share a
// bin, c = u.w, d = sum u^2 w^2; u, w the features of the exact mode.
TEST(SineSpeMoments, HasTheClosedFormOfTheSketchOverDraws) {
  for (const int64_t r : {4, 10, 7}) {  // F = 20: R divides it, or not
    const auto name = "sine_spe:sines=2,realizations=" + std::to_string(r);
    const Alike sketch(name + ",noise=sketch"), exact(name + ",noise=exact");
    EXPECT_TRUE(sketch.encoding->traits().stochastic);
    const double features = 20, bins = double(r), a = std::floor(features / bins);
    const double more = features - a * bins;  // bins that hold one feature more
    const double p = (more * (a + 1) * a + (bins - more) * a * (a - 1)) /
                     (features * (features - 1));
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Pair x = random_pair(1, 4, seed);
      const Encoded e = encode_once(
          *exact.encoding, x.q.expand({1, kHeads, 1, 4}), x.k.expand({1, kHeads, 1, 4}),
          {.query_start = 20, .key_start = 7}, {}, &exact.layer);
      const Tensor u = e.q[0][0].flatten() * std::sqrt(e.scale);
      const Tensor w = e.k[0][0].flatten() * std::sqrt(e.scale);
      const double c = (u * w).sum().item<double>();
      const double d = (u * u * w * w).sum().item<double>();
      const double norms = ((u * u).sum() * (w * w).sum()).item<double>();
      const double variance = p * ((norms - d) + (c * c - d));
      const Moments got = moments_of(sketch, x, seed);
      EXPECT_NEAR(got.mean, c, 5 * std::sqrt(variance / kDraws)) << seed;
      EXPECT_NEAR(got.variance / variance, 1, 5 * std::sqrt(8.0 / kDraws)) << seed;
    }
  }
}

// Root mean square error of the logits of many pairs against R, in logarithms.
TEST(SineSpeMoments, ErrsAsTheSquareRootOfTheRealizations) {
  const int64_t heads = 32, n = 64;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    at::manual_seed(seed);
    const auto wide = at::TensorOptions().dtype(at::kDouble);
    const Tensor q = at::randn({1, heads, n, 8}, wide);
    const Tensor k = at::randn({1, heads, n, 8}, wide);
    const HeadShape shape{.heads = heads, .dim = 8, .seed = seed};
    const auto logits = [&](const std::string& options) {
      const auto encoding = make_encoding("sine_spe:sines=2," + options, shape);
      const Layer layer = fresh_layer(*encoding);
      const Encoded e = encode_once(*encoding, q, k, {}, {.seed = seed}, &layer);
      return at::matmul(e.q, e.k.transpose(2, 3)) * e.scale;
    };
    const Tensor truth = logits("noise=exact");
    std::vector<double> x, y;
    for (const int64_t r : {16, 32, 64, 128, 256, 512, 1024}) {
      const Tensor error = logits("realizations=" + std::to_string(r)) - truth;
      x.push_back(std::log2(double(r)));
      y.push_back(std::log2(error.pow(2).mean().sqrt().item<double>()));
    }
    double mx = 0, my = 0, xy = 0, xx = 0;
    for (size_t i = 0; i < x.size(); ++i) mx += x[i] / 7, my += y[i] / 7;
    for (size_t i = 0; i < x.size(); ++i)
      xy += (x[i] - mx) * (y[i] - my), xx += (x[i] - mx) * (x[i] - mx);
    EXPECT_NEAR(xy / xx, -0.5, 0.05) << "seed " << seed;
  }
}

/// Causal attention weights phi(q').phi(k') of features x, rows summing to 1.
Tensor weights(const Tensor& q, const Tensor& k, bool relu) {
  const auto phi = [relu](const Tensor& x) {
    return relu ? x.clamp_min(0) + 1e-3 : at::elu(x) + 1;
  };
  const Tensor w = at::matmul(phi(q), phi(k).transpose(2, 3)).tril();
  return w / w.sum(-1, true);
}

/// An orthogonal matrix of +-R^(-1/2): Walsh and Hadamard's, R a power of two.
Tensor hadamard(int64_t r) {
  Tensor h = at::ones({1, 1}, at::kDouble);
  while (h.size(0) < r)
    h = at::cat({at::cat({h, h}, 1), at::cat({h, -h}, 1)}, 0) / std::sqrt(2.0);
  return h;
}

// The spread of attention weights over draws, with and without a Hadamard transform
// between the sketch and the map. It would add half of the sketch's own work.
TEST(SineSpeMoments, GainLessThanAFourthByAHadamardMixBeforeAMap) {
  constexpr int64_t kRepeats = 16;
  const Tensor mix = hadamard(64);
  for (const char* init : {"paper", "wide"}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const auto encoding =
          make_encoding(std::string("sine_spe:noise=sketch,init=") + init,
                        {.heads = 2, .dim = 64, .seed = seed});
      const Layer layer = fresh_layer(*encoding);
      at::manual_seed(seed);
      const auto wide = at::TensorOptions().dtype(at::kDouble);
      const Tensor q = at::randn({1, 2, 64, 64}, wide);
      const Tensor k = at::randn({1, 2, 64, 64}, wide);
      for (const bool relu : {false, true}) {
        std::vector<Tensor> plain, mixed;
        for (int64_t step = 0; step < kRepeats; ++step) {
          const Encoded e =
              encode_once(*encoding, q, k, {}, {.seed = seed, .step = step}, &layer);
          plain.push_back(weights(e.q, e.k, relu));
          mixed.push_back(weights(at::matmul(e.q, mix), at::matmul(e.k, mix), relu));
        }
        const auto spread = [](const std::vector<Tensor>& x) {
          return at::stack(x).var(0).sum().sqrt().item<double>();
        };
        const double ratio = spread(mixed) / spread(plain);
        EXPECT_GT(ratio, 0.75) << init << " " << seed << (relu ? " relu" : " elu1");
        EXPECT_LT(ratio, 1.1) << init << " " << seed << (relu ? " relu" : " elu1");
      }
    }
  }
}

}  // namespace
}  // namespace lagwise
