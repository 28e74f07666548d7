#include "lagwise/kernels/key_value_gradient.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

struct Case {
  int64_t n = 50, d = 9, e = 20;
  bool fades = false, before_first = false, divides = false;
  FeatureMap map = {};
  Storage storage = Storage::dense;
};

template <class T>
struct Head {
  explicit Head(const Case& c)
      : q(Mat<T>::uniform(c.n, c.d, 1, -1, 1, c.storage)),
        k(Mat<T>::uniform(c.n, c.d, 2, -1, 1, c.storage)),
        v(Mat<T>::uniform(c.n, c.e, 3, -1, 1, c.storage)),
        gradient(Mat<T>::uniform(c.n, c.e, 4, -1, 1, c.storage)),
        inverse(Mat<T>::uniform(c.n, 1, 5, 0.5, 1)),
        d_den(Mat<T>::uniform(c.n, 1, 6, -1, 1)),
        s(Mat<T>::uniform(c.d, c.e, 7, -1, 1, c.storage)),
        z(Mat<T>::uniform(1, c.d, 8, -1, 1)),
        log_factor(1, 1, static_cast<T>(-0.2)),
        d_k(c.n, c.d, c.storage),
        d_v(c.n, c.e, c.storage) {}
  Mat<T> q, k, v, gradient, inverse, d_den, s, z, log_factor, d_k, d_v;
};

double phi(const FeatureMap& map, double x) {
  if (map.kind == FeatureMap::Kind::none) return x;
  return x > 0 ? x + 1 : std::exp(x);
}
double slope(const FeatureMap& map, double x) {
  if (map.kind == FeatureMap::Kind::none) return 1;
  return x > 0 ? 1 : std::exp(x);
}

/// The header's formulas, row by row in f64.
struct Expected {
  Mat<double> d_k, d_v, s, z;
};
template <class T>
Expected by_definition(const Case& c, const Head<T>& h) {
  Expected want{Mat<double>(c.n, c.d, 0.0), Mat<double>(c.n, c.e, 0.0),
                Mat<double>(c.d, c.e, 0.0), Mat<double>(1, c.d, 0.0)};
  for (int64_t d = 0; d < c.d; ++d) {
    want.z(0, d) = h.z(0, d);
    for (int64_t e = 0; e < c.e; ++e) want.s(d, e) = h.s(d, e);
  }
  for (int64_t i = 0; i < c.n; ++i) {
    const bool still = !c.fades || (i == 0 && !c.before_first);
    const double g = still ? 1.0 : std::exp(double{h.log_factor(0, 0)});
    for (int64_t d = 0; d < c.d; ++d) {
      const double q = phi(c.map, h.q(i, d)), k = phi(c.map, h.k(i, d));
      if (c.divides) want.z(0, d) = g * want.z(0, d) + h.d_den(i, 0) * q;
      double d_k = c.divides ? want.z(0, d) : 0;
      for (int64_t e = 0; e < c.e; ++e) {
        const double scaled = double{h.gradient(i, e)} * h.inverse(i, 0);
        want.s(d, e) = g * want.s(d, e) + q * scaled;
        want.d_v(i, e) += k * want.s(d, e);
        d_k += h.v(i, e) * want.s(d, e);
      }
      want.d_k(i, d) = d_k * slope(c.map, h.k(i, d));
    }
  }
  return want;
}

template <class T>
void run(const Case& c, Head<T>& h) {
  const T one = 1;
  using By = typename Decay<T>::By;
  std::vector<T> scratch(static_cast<size_t>(key_value_gradient_scratch<T>(c.d, c.e)),
                         std::numeric_limits<T>::quiet_NaN());
  Decay<T> decay;
  if (c.fades) decay = {By::head, h.log_factor.view(), c.before_first};
  Rows<T> gradient{h.gradient.view(), {}, h.inverse.view()}, v{h.v.view()};
  if (c.divides) gradient.extra = h.d_den.view(), v.extra = {&one, c.n, 1, 0, 1};
  Sink<T> to_key{h.d_k.view()};
  if (c.map.kind != FeatureMap::Kind::none) to_key.at = h.k.view(), to_key.map = c.map;
  key_value_gradient<T>({h.q.view(), c.map}, gradient, {h.k.view(), c.map}, v, decay,
                        h.s.view(), c.divides ? h.z.data() : nullptr, to_key,
                        {h.d_v.view()}, scratch.data());
}

template <class T>
void expect_as_defined(const Case& c) {
  SCOPED_TRACE(::testing::Message()
               << "n " << c.n << " d " << c.d << " e " << c.e << " fades " << c.fades
               << " divides " << c.divides << (sizeof(T) == 4 ? " f32" : " f64"));
  const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;
  const Head<T> given(c);
  const Expected want = by_definition(c, given);
  for_each_simd_target([&] {
    Head<T> h(given);
    run(c, h);
    expect_close(h.d_k, want.d_k, tolerance);
    expect_close(h.d_v, want.d_v, tolerance);
    expect_close(h.s, want.s, tolerance);
    expect_close(h.z, want.z, tolerance);
  });
}
void expect_in_both_types(const Case& c) {
  expect_as_defined<float>(c);
  expect_as_defined<double>(c);
}

TEST(KeyValueGradient, MatchesTheDefinitionForEveryLengthAroundAChunk) {
  for (int64_t n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100})
    for (bool fades : {false, true})
      expect_in_both_types({.n = n, .fades = fades, .divides = true});
}

TEST(KeyValueGradient, MatchesTheDefinitionForEveryWidth) {
  for (int64_t d : {1, 7, 16, 33, 64})
    for (int64_t e : {1, 8, 16, 17, 32, 65})
      for (bool divides : {false, true})
        expect_in_both_types({.n = 40, .d = d, .e = e, .divides = divides});
}

TEST(KeyValueGradient, MeetsTheGivenStateWithOrWithoutAStep) {
  for (bool before_first : {false, true})
    for (bool divides : {false, true})
      expect_in_both_types(
          {.fades = true, .before_first = before_first, .divides = divides});
}

TEST(KeyValueGradient, AppliesFeatureMapsOnTheWayInAndOut) {
  for (int64_t d : {5, 16, 40})
    expect_in_both_types(
        {.d = d, .fades = true, .divides = true, .map = {FeatureMap::Kind::elu1}});
}

TEST(KeyValueGradient, TakesEveryStorage) {
  for (Storage storage : lagwise::testing::kEveryStorage) {
    expect_in_both_types({.d = 7, .e = 5, .divides = true, .storage = storage});
    expect_in_both_types({.d = 32, .e = 32, .divides = true, .storage = storage});
  }
}

TEST(KeyValueGradient, NeverLooksAhead) {
  for (bool fades : {false, true}) {
    const Case c{.n = 60, .fades = fades, .divides = true};
    Head<float> before(c), after(c);
    for (int64_t i = 41; i < c.n; ++i) {
      after.q(i, 0) = std::numeric_limits<float>::infinity();
      after.gradient(i, 0) = std::numeric_limits<float>::quiet_NaN();
    }
    run(c, before);
    run(c, after);
    expect_close(after.d_k.view().slice(0, 41), before.d_k.view().slice(0, 41), 0.0);
    expect_close(after.d_v.view().slice(0, 41), before.d_v.view().slice(0, 41), 0.0);
  }
}

}  // namespace
}  // namespace lagwise::kernels
