#include "lagwise/kernels/linear_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::kEveryStorage;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

struct Case {
  int64_t n = 70, d = 7, e = 5;
  int by = 0;    // Decay::By
  int from = 0;  // Denominator::From
  bool before_first = true;
  bool clamp = false;
  FeatureMap map = {};
  bool scaled = false, extra = false;
  Storage storage = Storage::dense;
};

double phi(const FeatureMap& map, double x) {
  if (map.kind == FeatureMap::Kind::elu1) return x > 0 ? x + 1 : std::exp(x);
  if (map.kind == FeatureMap::Kind::relu) return std::max(x, 0.0) + map.offset;
  return x;
}

double slope(const FeatureMap& map, double x) {
  if (map.kind == FeatureMap::Kind::elu1) return x > 0 ? 1 : std::exp(x);
  if (map.kind == FeatureMap::Kind::relu) return x > 0 ? 1 : 0;
  return 1;
}

/// One head with all a pass can be given.
template <class T>
struct Head {
  explicit Head(const Case& c)
      : q(Mat<T>::uniform(c.n, c.d, 1, low(c), 1, c.storage)),
        k(Mat<T>::uniform(c.n, c.d, 2, low(c), 1, c.storage)),
        v(Mat<T>::uniform(c.n, c.e, 3, -1, 1, c.storage)),
        q_scale(Mat<T>::uniform(c.n, 1, 4, 0.5, 1)),
        q_extra(Mat<T>::uniform(c.n, 1, 5, 0, 1)),
        k_extra(c.n, 1, T{1}),
        s(Mat<T>::uniform(c.d + c.extra, c.e, 6, -1, 1, c.storage)),
        z(Mat<T>::uniform(1, c.d + c.extra, 7, 0, 1)),
        log_factor(Mat<T>::uniform(1, std::max({c.d, c.e, int64_t{1}}), 8, -0.3, 0)),
        den(Mat<T>::uniform(c.n, 1, 9, 1, 2)),
        out(c.n, c.e, c.storage) {}
  // Without a denominator q and k take both signs.
  static double low(const Case& c) { return c.from == 1 ? 0 : -1; }

  Mat<T> q, k, v, q_scale, q_extra, k_extra, s, z, log_factor, den, out;
};

template <class T>
Rows<T> queries(const Case& c, const Head<T>& h) {
  return {h.q.view(), c.map, c.scaled ? h.q_scale.view() : MatView<const T>{},
          c.extra ? h.q_extra.view() : MatView<const T>{}};
}
template <class T>
Rows<T> keys(const Case& c, const Head<T>& h) {
  return {h.k.view(), c.map, {}, c.extra ? h.k_extra.view() : MatView<const T>{}};
}

template <class T>
Decay<T> decay_of(const Case& c, const Head<T>& h) {
  const int64_t widths[] = {0, 1, c.d, c.e};
  return {static_cast<typename Decay<T>::By>(c.by),
          h.log_factor.view().columns(0, widths[c.by]), c.before_first};
}

template <class T>
Denominator<T> denominator_of(const Case& c, Head<T>& h) {
  using From = typename Denominator<T>::From;
  const auto from = static_cast<From>(c.from);
  if (from == From::none) return {};
  T* const z = from == From::features ? h.z.data() : nullptr;
  return {from, static_cast<T>(0.01), c.clamp, h.den.view(), z};
}

/// The kernel over consecutive pieces of the sequence, carrying the state.
template <class T>
void run(const Case& c, Head<T>& h, std::vector<int64_t> cuts = {}) {
  std::vector<T> scratch(static_cast<size_t>(linear_scratch<T>(c.d + c.extra, c.e)),
                         std::numeric_limits<T>::quiet_NaN());
  const auto slice = [](auto view, int64_t begin, int64_t end) {
    return view.data ? view.slice(begin, end) : view;
  };
  const auto piece = [&](const Rows<T>& rows, int64_t begin, int64_t end) {
    return Rows<T>{rows.x.slice(begin, end), rows.map, slice(rows.scale, begin, end),
                   slice(rows.extra, begin, end)};
  };
  cuts.push_back(c.n);
  int64_t begin = 0;
  auto decay = decay_of(c, h);
  for (int64_t end : cuts) {
    auto denominator = denominator_of(c, h);
    denominator.den = slice(denominator.den, begin, end);
    causal_linear<T>(piece(queries(c, h), begin, end), piece(keys(c, h), begin, end),
                     {h.v.view().slice(begin, end)}, decay, denominator, h.s.view(),
                     {h.out.view().slice(begin, end)}, scratch.data());
    if (end > begin) decay.before_first = true;
    begin = end;
  }
}

/// What `run` must give: the recurrence of the header, in f64, token by token.
struct Expected {
  Mat<double> out, s, z, den;
};

template <class T>
Expected by_definition(const Case& c, const Head<T>& h) {
  const int64_t d_all = c.d + c.extra;
  Expected want{Mat<double>(c.n, c.e, 0.0), Mat<double>(d_all, c.e, 0.0),
                Mat<double>(1, d_all, 0.0), Mat<double>(c.n, 1, 0.0)};
  for (int64_t d = 0; d < d_all; ++d) {
    want.z(0, d) = h.z(0, d);
    for (int64_t e = 0; e < c.e; ++e) want.s(d, e) = h.s(d, e);
  }
  const auto g = [&](int64_t d, int64_t e) {
    const int64_t at[] = {0, 0, d, e};
    return c.by == 0 ? 1.0 : std::exp(double{h.log_factor(0, at[c.by])});
  };
  for (int64_t i = 0; i < c.n; ++i) {
    const bool still = i == 0 && !c.before_first;
    double den = 0;
    for (int64_t d = 0; d < d_all; ++d) {
      const double scale = c.scaled ? h.q_scale(i, 0) : 1;
      const double q = d < c.d ? scale * phi(c.map, h.q(i, d)) : h.q_extra(i, 0);
      const double k = d < c.d ? phi(c.map, h.k(i, d)) : 1;
      want.z(0, d) = (still ? 1.0 : g(d, 0)) * want.z(0, d) + k;
      den += q * want.z(0, d);
      for (int64_t e = 0; e < c.e; ++e) {
        want.s(d, e) = (still ? 1.0 : g(d, e)) * want.s(d, e) + k * h.v(i, e);
        want.out(i, e) += q * want.s(d, e);
      }
    }
    if (c.from == 0) continue;
    den = c.clamp ? std::max(den, 0.01) : den + 0.01;
    if (c.from == 2) den = h.den(i, 0);
    want.den(i, 0) = den;
    for (int64_t e = 0; e < c.e; ++e) want.out(i, e) /= den;
  }
  return want;
}

template <class T>
void expect_as_defined(const Case& c, std::vector<int64_t> cuts = {}) {
  SCOPED_TRACE(::testing::Message()
               << "n " << c.n << " d " << c.d << " e " << c.e << " by " << c.by
               << " from " << c.from << " clamp " << c.clamp << " map "
               << static_cast<int>(c.map.kind) << " extra " << c.extra << " storage "
               << name_of(c.storage) << (sizeof(T) == 4 ? " f32" : " f64"));
  const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;
  const Head<T> given(c);
  const Expected want = by_definition(c, given);
  for_each_simd_target([&] {
    Head<T> h(given);
    run(c, h, cuts);
    expect_close(h.out, want.out, tolerance);
    expect_close(h.s, want.s, tolerance);
    if (c.from != 1) return;
    expect_close(h.z, want.z, tolerance);
    expect_close(h.den, want.den, tolerance);
  });
}

void expect_in_both_types(const Case& c, std::vector<int64_t> cuts = {}) {
  expect_as_defined<float>(c, cuts);
  expect_as_defined<double>(c, cuts);
}

constexpr int kDecays = 4, kDenominators = 3;

/// A denominator of features has no meaning where columns decay apart.
bool legal(const Case& c) { return !(c.by == 3 && c.from == 1); }

TEST(CausalLinear, MatchesTheDefinitionForEveryLengthAroundAChunk) {
  for (int64_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 65, 130})
    for (int by = 0; by < kDecays; ++by) expect_in_both_types({.n = n, .by = by});
}

TEST(CausalLinear, MatchesTheDefinitionForEveryWidth) {
  for (int64_t d : {1, 4, 7, 16, 33, 64})
    for (int64_t e : {0, 1, 8, 17, 32, 65}) {
      expect_in_both_types({.n = 40, .d = d, .e = e});
      expect_in_both_types({.n = 40, .d = d, .e = e, .by = 2, .from = 1});
      expect_in_both_types({.n = 40, .d = d, .e = e, .by = 3});
    }
}

TEST(CausalLinear, MatchesTheDefinitionForEveryDecayAndDenominator) {
  for (int by = 0; by < kDecays; ++by)
    for (int from = 0; from < kDenominators; ++from)
      for (bool clamp : {false, true})
        for (bool before_first : {false, true}) {
          const Case c{
              .by = by, .from = from, .before_first = before_first, .clamp = clamp};
          if (legal(c)) expect_in_both_types(c);
        }
}

TEST(CausalLinear, MapsScalesAndAppendsWhileLoading) {
  const FeatureMap maps[] = {
      {}, {FeatureMap::Kind::elu1}, {FeatureMap::Kind::relu, 0.25}};
  for (const FeatureMap& map : maps)
    for (int by : {0, 1, 3})
      for (bool scaled : {false, true})
        for (bool extra : {false, true})
          expect_in_both_types({.d = 16,
                                .e = 16,
                                .by = by,
                                .map = map,
                                .scaled = scaled,
                                .extra = extra});
}

TEST(CausalLinear, TakesEveryStorage) {
  for (Storage storage : kEveryStorage) {
    expect_in_both_types({.d = 7, .e = 5, .from = 1, .storage = storage});
    expect_in_both_types({.d = 32, .e = 32, .from = 1, .storage = storage});
  }
}

TEST(CausalLinear, ResumesFromAState) {
  for (int by = 0; by < kDecays; ++by)
    for (int from = 0; from < kDenominators; ++from) {
      const Case c{.by = by, .from = from};
      if (legal(c)) expect_in_both_types(c, {1, 2, 34, 34, 50});
    }
}

TEST(CausalLinear, GivesTheSameBitsHoweverColumnsAreSplit) {
  const Case whole{.n = 100, .d = 20, .e = 96, .by = 1};
  Head<float> h(whole);
  run(whole, h);
  Head<float> parts(whole);
  std::vector<float> scratch(static_cast<size_t>(linear_scratch<float>(20, 96)));
  for (int64_t begin : {0, 32}) {
    const int64_t end = begin == 0 ? 32 : 96;
    causal_linear<float>(queries(whole, parts), keys(whole, parts),
                         {parts.v.view().columns(begin, end)}, decay_of(whole, parts),
                         {}, parts.s.view().columns(begin, end),
                         {parts.out.view().columns(begin, end)}, scratch.data());
  }
  expect_close(parts.out, h.out, 0.0);
  expect_close(parts.s, h.s, 0.0);
}

TEST(CausalLinear, NeverLooksAhead) {
  for (int by = 0; by < kDecays; ++by) {
    const Case c{.n = 60, .by = by};
    Head<float> before(c), after(c);
    for (int64_t i = 41; i < c.n; ++i) {
      after.k(i, 0) = std::numeric_limits<float>::infinity();
      after.v(i, 0) = std::numeric_limits<float>::quiet_NaN();
    }
    run(c, before);
    run(c, after);
    expect_close(after.out.view().slice(0, 41), before.out.view().slice(0, 41), 0.0);
  }
}

TEST(CausalLinear, GivesZerosWhereThereIsNothingToAttendTo) {
  Case c{.n = 40, .from = 1};
  Head<float> h(c);
  h.k.fill(0);
  h.s.fill(0);
  h.z.fill(0);
  std::vector<float> scratch(static_cast<size_t>(linear_scratch<float>(c.d, c.e)));
  auto denominator = denominator_of(c, h);
  denominator.eps = 0;
  causal_linear<float>(queries(c, h), keys(c, h), {h.v.view()}, {}, denominator,
                       h.s.view(), {h.out.view()}, scratch.data());
  expect_close(h.out, Mat<float>(c.n, c.e, 0.0f), 0.0);
}

/// `out` must be result * phi'(at), and the moment sum_i phi(at_i) result_i.
template <class T>
void expect_chain_rule(const Case& c) {
  const auto at = Mat<T>::uniform(c.n, c.e, 20, -2, 2, c.storage);
  const Expected want = by_definition(c, Head<T>(c));
  Mat<double> out(c.n, c.e, 0.0), moment(1, c.e, 0.0);
  for (int64_t i = 0; i < c.n; ++i)
    for (int64_t e = 0; e < c.e; ++e) {
      out(i, e) = want.out(i, e) * slope(c.map, at(i, e));
      moment(0, e) += phi(c.map, at(i, e)) * want.out(i, e);
    }
  for_each_simd_target([&] {
    Head<T> h(c);
    Mat<double> got(1, c.e, 0.0);
    std::vector<T> scratch(static_cast<size_t>(linear_scratch<T>(c.d, c.e)));
    causal_linear<T>(queries(c, h), keys(c, h), {h.v.view()}, decay_of(c, h), {},
                     h.s.view(), {h.out.view(), at.view(), c.map, got.data()},
                     scratch.data());
    expect_close(h.out, out, sizeof(T) == 4 ? 4e-6 : 1e-12);
    expect_close(got, moment, sizeof(T) == 4 ? 4e-6 : 1e-12);
  });
}

TEST(CausalLinear, AppliesTheChainRuleWhileStoring) {
  const FeatureMap maps[] = {
      {}, {FeatureMap::Kind::elu1}, {FeatureMap::Kind::relu, 0.25}};
  for (const FeatureMap& map : maps)
    for (int64_t e : {5, 16, 40})
      for (Storage storage : {Storage::dense, Storage::spread}) {
        expect_chain_rule<float>({.e = e, .by = 1, .map = map, .storage = storage});
        expect_chain_rule<double>({.e = e, .by = 1, .map = map, .storage = storage});
      }
}

}  // namespace
}  // namespace lagwise::kernels
