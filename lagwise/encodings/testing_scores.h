#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>

#include "lagwise/encodings/encoding.h"

/// Test support: the scores that exact attention would form from what an encoding
/// hands over, pair by pair, to hold against its definition in double.
namespace lagwise::testing {

/// [B, H, N, M]
inline at::Tensor scores_of(const Encoded& x) {
  const int64_t b = x.q.size(0), h = x.q.size(1), n = x.q.size(2), m = x.k.size(2);
  const at::Tensor index = (at::arange(n, at::kLong).unsqueeze(1) -
                            at::arange(m, at::kLong).unsqueeze(0) + (m - 1))
                               .expand({b, h, n, m});
  at::Tensor s = at::matmul(x.q, x.k.transpose(-1, -2));
  if (x.lag_keys.defined())
    s = s + at::matmul(x.q, x.lag_keys.transpose(-1, -2)).gather(3, index);
  s = s * x.scale;
  if (x.lag_bias.defined())
    s = s + x.lag_bias.unsqueeze(1).expand({b, h, n, n + m - 1}).gather(3, index);
  return s;
}

inline Placement placed(int64_t query_start, int64_t key_start, bool causal) {
  Placement at;
  at.query_start = query_start, at.key_start = key_start, at.causal = causal;
  return at;
}

struct ScoreCase {
  int64_t n = 40, m = 310, query_start = 270, key_start = 3;
  bool causal = true;
  Placement placement() const { return placed(query_start, key_start, causal); }
  int64_t lag(int64_t i, int64_t j) const { return query_start + i - key_start - j; }
};

/// Self-attention, decoding late, keys ahead, one of each.
inline const std::vector<ScoreCase>& score_cases() {
  static const std::vector<ScoreCase> cases = {{},
                                               {9, 9, 0, 0, true},
                                               {310, 40, 0, 0, false},
                                               {40, 310, 5, 0, false},
                                               {1, 1, 7, 0, true}};
  return cases;
}

inline at::Tensor random_rows(int64_t heads, int64_t rows, int64_t width,
                              uint64_t seed) {
  at::Tensor x = at::empty({2, heads, rows, width}, at::kDouble);
  Noise(seed).at({}).fill_normal(0, std::span(x.data_ptr<double>(), size_t(x.numel())));
  return x;
}

/// The parameters of a layer in double, ready for gradients.
inline Layer double_layer(Encoding& encoding) {
  Layer layer{0, 1, encoding.layer(0, 1)};
  for (auto& [name, value] : layer.own)
    value = value.to(at::kDouble).set_requires_grad(true);
  for (auto& [name, value] : encoding.shared()) {
    at::Tensor handle = value;
    handle.set_data(handle.to(at::kDouble));
    handle.set_requires_grad(true);
  }
  return layer;
}

using ScoreDefinition = std::function<double(
    int64_t h, const double* q, const double* k, int64_t lag, const ScoreCase&)>;

/// Scores of every visible pair, in every case, against the definition in double.
inline void expect_scores(Encoding& encoding, const Layer& layer,
                          const ScoreDefinition& definition,
                          const std::vector<ScoreCase>& cases = score_cases()) {
  const int64_t h = encoding.shape().heads, d = encoding.shape().dim;
  for (const ScoreCase& c : cases) {
    SCOPED_TRACE("N " + std::to_string(c.n) + " M " + std::to_string(c.m) +
                 (c.causal ? " causal" : " full"));
    const at::Tensor q = random_rows(h, c.n, d, 1), k = random_rows(h, c.m, d, 2);
    const Encoded x = encode_once(encoding, q, k, c.placement(), {}, &layer);
    const at::Tensor got = scores_of(x).detach().contiguous();
    double worst = 0;
    for (int64_t bh = 0; bh < 2 * h; ++bh)
      for (int64_t i = 0; i < c.n; ++i)
        for (int64_t j = 0; j < c.m; ++j) {
          if (c.causal && c.lag(i, j) < 0) continue;
          const double want =
              definition(bh % h, q.data_ptr<double>() + (bh * c.n + i) * d,
                         k.data_ptr<double>() + (bh * c.m + j) * d, c.lag(i, j), c);
          const double have = got.data_ptr<double>()[(bh * c.n + i) * c.m + j];
          worst = std::max(worst, std::isnan(have) ? INFINITY : std::abs(have - want));
        }
    EXPECT_LE(worst, 1e-10);
  }
}

/// The gradient of every parameter of a random sum of scores and table entries
/// against central differences along a random direction.
inline void expect_gradients(Encoding& encoding, Layer& layer) {
  const ScoreCase c{.n = 12, .m = 30, .query_start = 20, .key_start = 0};
  const int64_t h = encoding.shape().heads, d = encoding.shape().dim;
  const at::Tensor q = random_rows(h, c.n, d, 1), k = random_rows(h, c.m, d, 2);
  const at::Tensor weight = random_rows(h, c.n, c.m, 3);
  const auto loss = [&] {
    const Encoded x = encode_once(encoding, q, k, c.placement(), {}, &layer);
    at::Tensor sum = (scores_of(x) * weight).sum();
    if (x.lag_values.defined()) {
      const at::Tensor ramp = at::arange(x.lag_values.numel(), at::kDouble);
      sum = sum + (x.lag_values.reshape({-1}) * ramp.cos()).sum();
    }
    return sum;
  };
  Parameters all = layer.own;
  for (const auto& parameter : encoding.shared()) all.push_back(parameter);
  for (auto& [name, value] : all) {
    at::Tensor x = value;
    const at::Tensor grad =
        torch::autograd::grad({loss()}, {x}, {}, {}, false, true)[0];
    ASSERT_TRUE(grad.defined()) << name << " got no gradient";
    const c10::NoGradGuard constant;
    const at::Tensor way = at::arange(x.numel(), at::kDouble).sin().reshape(x.sizes());
    constexpr double kStep = 1e-6;
    x.add_(way, kStep);
    const double up = loss().item<double>();
    x.sub_(way, 2 * kStep);
    const double down = loss().item<double>();
    x.add_(way, kStep);
    const double slope = (grad * way).sum().item<double>();
    EXPECT_NEAR(slope, (up - down) / (2 * kStep), 1e-5 * (1 + std::abs(slope))) << name;
  }
}

inline double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/// The line that `act` is refused with.
inline std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

inline void expect_refuses_positions(Encoding& encoding) {
  const at::Tensor x = random_rows(encoding.shape().heads, 3, encoding.shape().dim, 1);
  Placement at;
  at.query_at = at::arange(3, at::kLong);
  EXPECT_NE(refusal([&] { encode_once(encoding, x, x, at); }).find("got explicit"),
            std::string::npos);
  Placement image;
  image.grid = {3, 1};
  EXPECT_NE(refusal([&] { encode_once(encoding, x, x, image); }).find("got a grid"),
            std::string::npos);
}

}  // namespace lagwise::testing
