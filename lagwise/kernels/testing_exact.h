#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"
#include "lagwise/kernels/exact_attention.h"

/// Test support: one head of exact attention and its gradients by their definitions,
/// in double, with no cleverness.
namespace lagwise::kernels::testing {

using lagwise::testing::Mat;
using lagwise::testing::Storage;

struct ExactCase {
  int64_t n = 7, m = 7, d = 5, e = 3;
  Sight sight = {};
  bool bias = false, keys = false, values = false, key_bias = false;
  Storage storage = Storage::dense;
  int64_t spare = 0;  ///< table rows beyond those in reach, at either end
  int64_t lags() const { return n + m - 1 + 2 * spare; }
};

/// The numbers of a case. Small whole multiples of 1/64 in q: scores stay moderate.
template <class T>
struct ExactData {
  explicit ExactData(const ExactCase& c)
      : shape(c),
        q(Mat<T>::uniform(c.n, c.d, 1, -1, 1, c.storage)),
        k(Mat<T>::uniform(c.m, c.d, 2, -1, 1, c.storage)),
        v(Mat<T>::uniform(c.m, c.e, 3, -1, 1, c.storage)),
        d_out(Mat<T>::uniform(c.n, c.e, 4, -1, 1, c.storage)),
        bias(Mat<T>::uniform(c.lags(), 1, 5, -2, 2, c.storage)),
        keys(Mat<T>::uniform(c.lags(), c.d, 6, -1, 1, c.storage)),
        values(Mat<T>::uniform(c.lags(), c.e, 7, -1, 1, c.storage)),
        key_bias(Mat<T>::uniform(c.m, 1, 8, -2, 2, c.storage)) {}

  ExactHead<T> head() const {
    ExactHead<T> h{.q = q.view(), .k = k.view(), .v = v.view()};
    h.scale = static_cast<T>(0.75);
    h.sight = shape.sight;
    if (shape.bias) h.lag_bias = bias.view();
    if (shape.keys) h.lag_keys = keys.view();
    if (shape.values) h.lag_values = values.view();
    if (shape.key_bias) h.key_bias = key_bias.view();
    h.lag_zero = shape.m - 1 + shape.spare;
    return h;
  }

  ExactCase shape;
  Mat<T> q, k, v, d_out, bias, keys, values, key_bias;
};

struct ExactTruth {
  explicit ExactTruth(const ExactCase& c)
      : out(c.n, c.e, 0.0),
        q(c.n, c.d, 0.0),
        k(c.m, c.d, 0.0),
        v(c.m, c.e, 0.0),
        bias(c.lags(), 1, 0.0),
        keys(c.lags(), c.d, 0.0),
        values(c.lags(), c.e, 0.0),
        key_bias(c.m, 1, 0.0) {}
  Mat<double> out, q, k, v, bias, keys, values, key_bias;
};

inline bool sees(const Sight& sight, int64_t i, int64_t j) {
  const int64_t lag = i + sight.shift - j;
  return (!sight.causal || lag >= 0) &&
         (sight.window == 0 || (lag < sight.window && -lag < sight.window));
}

template <class T>
ExactTruth by_definition(const ExactData<T>& x) {
  const ExactCase& c = x.shape;
  const ExactHead<T> h = x.head();
  const double scale = h.scale;
  ExactTruth to(c);
  for (int64_t i = 0; i < c.n; ++i) {
    std::vector<double> w(static_cast<size_t>(c.m), 0.0), dp = w;
    double sum = 0, through = 0;
    for (int64_t j = 0; j < c.m; ++j) {
      if (!sees(c.sight, i, j)) continue;
      const int64_t lag = h.lag_zero + i - j;
      double s = 0;
      for (int64_t t = 0; t < c.d; ++t)
        s += double(x.q(i, t)) *
             (double(x.k(j, t)) + (c.keys ? double(x.keys(lag, t)) : 0.0));
      sum += w[size_t(j)] =
          std::exp(scale * s + (c.bias ? double(x.bias(lag, 0)) : 0.0) +
                   (c.key_bias ? double(x.key_bias(j, 0)) : 0.0));
    }
    for (int64_t j = 0; j < c.m && sum > 0; ++j) {
      if (!sees(c.sight, i, j)) continue;
      w[size_t(j)] /= sum;
      for (int64_t t = 0; t < c.e; ++t) {
        const double value = double(x.v(j, t)) +
                             (c.values ? double(x.values(h.lag_zero + i - j, t)) : 0.0);
        to.out(i, t) += w[size_t(j)] * value;
        dp[size_t(j)] += double(x.d_out(i, t)) * value;
      }
    }
    for (int64_t t = 0; t < c.e; ++t) through += double(x.d_out(i, t)) * to.out(i, t);
    for (int64_t j = 0; j < c.m; ++j) {
      if (!sees(c.sight, i, j)) continue;
      const int64_t lag = h.lag_zero + i - j;
      const double ds = w[size_t(j)] * (dp[size_t(j)] - through);
      to.bias(lag, 0) += ds;
      to.key_bias(j, 0) += ds;
      for (int64_t t = 0; t < c.d; ++t) {
        const double key = double(x.k(j, t)) + (c.keys ? double(x.keys(lag, t)) : 0.0);
        to.q(i, t) += scale * ds * key;
        to.k(j, t) += scale * ds * double(x.q(i, t));
        to.keys(lag, t) += scale * ds * double(x.q(i, t));
      }
      for (int64_t t = 0; t < c.e; ++t) {
        to.v(j, t) += w[size_t(j)] * double(x.d_out(i, t));
        to.values(lag, t) += w[size_t(j)] * double(x.d_out(i, t));
      }
    }
  }
  return to;
}

}  // namespace lagwise::kernels::testing
