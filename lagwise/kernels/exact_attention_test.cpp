#include "lagwise/kernels/exact_attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "lagwise/kernels/testing_exact.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using testing::by_definition;
using testing::ExactCase;
using testing::ExactData;
using testing::ExactTruth;
using testing::Mat;
using testing::Storage;

template <class T>
struct ForwardResult {
  Mat<T> out, stats;
};

// Rows in calls of at most `step`.
template <class T>
ForwardResult<T> attend(const ExactData<T>& x, int64_t step) {
  const ExactHead<T> head = x.head();
  std::vector<T> packed(size_t(exact_packed(head))),
      scratch(size_t(exact_scratch(head)), T(NAN));
  std::fill(packed.begin(), packed.end(), T(NAN));
  exact_pack(head, packed.data());
  ForwardResult<T> r{Mat<T>(x.shape.n, x.shape.e, x.shape.storage),
                     Mat<T>(x.shape.n, 2)};
  for (int64_t i = 0; i < x.shape.n; i += step)
    exact_rows<T>(head, packed.data(), i, std::min(i + step, x.shape.n), r.out.view(),
                  r.stats.view(), scratch.data());
  return r;
}

template <class T>
struct Gradients {
  Mat<T> q, k, v, bias, keys, values, key_bias;
};

// Keys in calls of at most `step`; parts are summed.
template <class T>
Gradients<T> differentiate(const ExactData<T>& x, int64_t step) {
  const ExactCase& c = x.shape;
  const ExactHead<T> head = x.head();
  const ForwardResult<T> forward = attend(x, c.n);
  std::vector<T> packed(size_t(exact_gradient_packed(head)), T(NAN));
  std::vector<T> scratch(size_t(exact_gradient_scratch(head, std::min(step, c.m))),
                         T(NAN));
  exact_gradient_pack<T>(head, forward.out.view(), x.d_out.view(), packed.data());
  Gradients<T> sum{Mat<T>(c.n, c.d, T{0}),      Mat<T>(c.m, c.d, c.storage),
                   Mat<T>(c.m, c.e, c.storage), Mat<T>(c.lags(), 1, T{0}),
                   Mat<T>(c.lags(), c.d, T{0}), Mat<T>(c.lags(), c.e, T{0}),
                   Mat<T>(c.m, 1, c.storage)};
  const auto add = [](Mat<T>& to, const Mat<T>& part) {
    for (int64_t i = 0; i < to.rows(); ++i)
      for (int64_t j = 0; j < to.cols(); ++j) to(i, j) += part(i, j);
  };
  for (int64_t j = 0; j < c.m; j += step) {
    Mat<T> q(c.n, c.d, c.storage), bias(c.lags(), 1), keys(c.lags(), c.d, c.storage),
        values(c.lags(), c.e, c.storage);
    exact_gradient<T>(
        head, x.d_out.view(), forward.stats.view(), packed.data(), j,
        std::min(j + step, c.m),
        {q.view(), sum.k.view(), sum.v.view(), c.bias ? bias.view() : MatView<T>{},
         c.keys ? keys.view() : MatView<T>{}, c.values ? values.view() : MatView<T>{},
         c.key_bias ? sum.key_bias.view() : MatView<T>{}},
        scratch.data());
    add(sum.q, q);
    if (c.bias) add(sum.bias, bias);
    if (c.keys) add(sum.keys, keys);
    if (c.values) add(sum.values, values);
  }
  return sum;
}

/// What the kernels give is the definition; on every SIMD target, or the best one alone.
template <class T>
void expect_truth(const ExactCase& c, bool every_target = false) {
  SCOPED_TRACE(::testing::Message()
               << "n " << c.n << " m " << c.m << " d " << c.d << " e " << c.e
               << " causal " << c.sight.causal << " shift " << c.sight.shift
               << " window " << c.sight.window << " tables " << c.bias << c.keys
               << c.values << c.key_bias << " storage " << name_of(c.storage)
               << " bytes " << sizeof(T));
  const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;
  const ExactData<T> x(c);
  const ExactTruth want = by_definition(x);
  const auto near = [&](const Mat<T>& have, const Mat<double>& truth) {
    expect_close(have, truth, tolerance, tolerance);
  };
  const auto compare = [&] {
    expect_close(attend(x, kExactRows).out, want.out, tolerance);
    const Gradients<T> got = differentiate(x, kExactKeys);
    near(got.q, want.q);
    near(got.k, want.k);
    near(got.v, want.v);
    if (c.bias) near(got.bias, want.bias);
    if (c.keys) near(got.keys, want.keys);
    if (c.values) near(got.values, want.values);
    if (c.key_bias) near(got.key_bias, want.key_bias);
  };
  every_target ? for_each_simd_target(compare) : compare();
}

constexpr Sight kSights[] = {{},
                             {.causal = true},
                             {.causal = true, .shift = 5},
                             {.causal = true, .shift = -4},
                             {.causal = true, .shift = 0, .window = 9},
                             {.causal = false, .shift = 2, .window = 30}};

TEST(ExactKernel, MatchesTheDefinitionOnEverySimdTarget) {
  for (const Sight& sight : kSights)
    for (const int tables : {0, 1, 2, 4, 8, 15}) {
      ExactCase c{.n = 101, .m = 75, .d = 7, .e = 19, .sight = sight};
      c.bias = tables & 1, c.keys = tables & 2, c.values = tables & 4,
      c.key_bias = tables & 8;
      expect_truth<float>(c, true);
      expect_truth<double>(c, true);
    }
}

TEST(ExactKernel, TakesLengthsAroundItsTiles) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int64_t kWidths[] = {5, 3};  // it is slow there
#else
  constexpr int64_t kWidths[] = {16, 8};
#endif
  std::vector<Sight> sights(std::begin(kSights), std::end(kSights));
  sights.push_back({.causal = true, .shift = kExactKeys});
  // A tile whose first rows see none of its keys, and whose last rows see some: a
  // product for the blind ones would reach past the sums by lag (the sanitiser tells).
  sights.push_back({.causal = true, .shift = kExactKeys - kExactRows / 2});
  sights.push_back({.causal = true, .shift = 7, .window = kExactRows + 20});
  for (const int64_t n :
       {int64_t{1}, kExactRows - 1, kExactRows, kExactRows + 1, 2 * kExactRows + 1})
    for (const int64_t m : {int64_t{1}, int64_t{16}, kExactKeys - 1, kExactKeys,
                            kExactKeys + 1, 2 * kExactKeys + 16})
      for (const Sight& sight : sights) {
        ExactCase c{.n = n, .m = m, .d = kWidths[0], .e = kWidths[1], .sight = sight};
        c.bias = c.keys = c.values = c.key_bias = true;
        expect_truth<double>(c);
      }
}

TEST(ExactKernel, TakesAnyWidthsAndStorage) {
  for (const Storage storage : lagwise::testing::kEveryStorage)
    for (const int64_t d : {1, 33})
      for (const int64_t e : {1, 40}) {
        ExactCase c{.n = 60, .m = 50, .d = d, .e = e, .sight = {.causal = true}};
        c.bias = c.keys = c.values = c.key_bias = true;
        c.storage = storage;
        expect_truth<float>(c);
      }
}

TEST(ExactKernel, ReadsTablesThatAreLongerThanNeeded) {
  ExactCase c{.n = 55, .m = 60, .sight = {.causal = true, .shift = 5}};
  c.bias = c.keys = c.values = c.key_bias = true;
  c.spare = 6;
  expect_truth<double>(c);
}

TEST(ExactKernel, RowsMayBeSplitBetweenCalls) {
  ExactCase c{.n = 150, .m = 230, .d = 24, .e = 9, .sight = {.causal = true}};
  c.bias = c.keys = c.values = c.key_bias = true;
  const ExactData<float> x(c);
  expect_close(attend(x, kExactRows).out, attend(x, c.n).out, 0.0);
}

TEST(ExactKernel, KeysMayBeSplitBetweenCalls) {
  ExactCase c{.n = 150, .m = 430, .d = 24, .e = 9};
  c.bias = c.keys = c.values = c.key_bias = true;
  const ExactData<double> x(c);
  const Gradients<double> parts = differentiate(x, kExactKeys);
  const Gradients<double> whole = differentiate(x, c.m);
  expect_close(parts.k, whole.k, 0.0);
  expect_close(parts.v, whole.v, 0.0);
  expect_close(parts.q, whole.q, 1e-14);
  expect_close(parts.keys, whole.keys, 1e-14);
}

TEST(ExactKernel, BlindRowsGiveZerosAndTakeNoGradient) {
  const ExactCase c{.n = 60, .m = 50, .sight = {.causal = true, .shift = -7}};
  const ExactData<float> x(c);
  const auto r = attend(x, c.n);
  const auto g = differentiate(x, c.m);
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t t = 0; t < c.e; ++t) EXPECT_EQ(r.out(i, t), 0.0f);
    for (int64_t t = 0; t < c.d; ++t) EXPECT_EQ(g.q(i, t), 0.0f);
  }
}

TEST(ExactKernel, HiddenKeysMayHoldAnything) {
  const ExactCase c{.n = 100, .m = 100, .d = 7, .e = 5, .sight = {.causal = true}};
  const ExactData<float> calm(c);
  const Mat<float> want = attend(calm, c.n).out;
  for (const int64_t from : {1, 15, 16, 70, 95, 96}) {
    ExactData<float> wild(c);
    for (int64_t j = from; j < c.m; ++j) {
      for (int64_t t = 0; t < c.d; ++t)
        wild.k(j, t) = std::numeric_limits<float>::infinity();
      for (int64_t t = 0; t < c.e; ++t) wild.v(j, t) = NAN;
    }
    const Mat<float> got = attend(wild, c.n).out;
    expect_close(got.view().slice(0, from), want.view().slice(0, from), 0.0);
  }
}

TEST(ExactKernel, ScoresOfAnySizeStayFinite) {
  ExactCase c{.n = 70, .m = 300, .d = 7, .e = 5};
  c.bias = true;
  ExactData<float> x(c);
  for (int64_t i = 0; i < c.lags(); ++i) x.bias(i, 0) *= 400.0f;
  const ExactTruth want = [&] {  // the same in double, where exp(800) is out of reach
    ExactData<float> low(x);
    for (int64_t i = 0; i < c.lags(); ++i) low.bias(i, 0) -= 800.0f;
    return by_definition(low);
  }();
  expect_close(attend(x, c.n).out, want.out, 2e-4);
}

}  // namespace
}  // namespace lagwise::kernels
