// Gates in the kernels of linear attention: each row fades by its own factor. The
// reference is the same kernel without gates, one row at a time.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"
#include "lagwise/kernels/gate_gradient.h"
#include "lagwise/kernels/linear_attention.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;

constexpr int64_t kRows = 53;

/// One call with gates, and one call without them for each row.
template <class T>
void expect_row_by_row(typename Decay<T>::By by, bool before_first, bool divides,
                       int64_t d, int64_t e) {
  using By = typename Decay<T>::By;
  using From = typename Denominator<T>::From;
  const auto q = Mat<T>::uniform(kRows, d, 1, 0, 1),
             k = Mat<T>::uniform(kRows, d, 2, 0, 1);
  const auto v = Mat<T>::uniform(kRows, e, 3, -1, 1),
             s0 = Mat<T>::uniform(d, e, 4, -1, 1);
  const auto z0 = Mat<T>::uniform(1, d, 5, 0, 1);
  auto gate = Mat<T>::uniform(kRows, 1, 6, -0.5, 0);
  gate(20, 0) = -std::numeric_limits<T>::infinity();
  const int64_t span = by == By::column ? e : by == By::channel ? d : 1;
  const auto log_factor = Mat<T>::uniform(1, span, 7, -0.3, 0);
  for_each_simd_target([&] {
    Mat<T> whole(kRows, e), s(s0), z(z0), rows(kRows, e), s_rows(s0), z_rows(z0);
    std::vector<T> scratch(static_cast<size_t>(linear_scratch<T>(d, e)),
                           std::numeric_limits<T>::quiet_NaN());
    const auto denominator = [&](Mat<T>& state) {
      Denominator<T> by_features;
      if (divides)
        by_features = {From::features, static_cast<T>(0.1), false, {}, state.data()};
      return by_features;
    };
    Decay<T> decay{by, by == By::none ? MatView<const T>{} : log_factor.view(),
                   before_first};
    decay.log_gate = gate.view().slice(before_first ? 0 : 1, kRows);
    causal_linear<T>({q.view()}, {k.view()}, {v.view()}, decay, denominator(z),
                     s.view(), {whole.view()}, scratch.data());
    for (int64_t i = 0; i < kRows; ++i) {
      Mat<T> log(1, span, T{0});
      for (int64_t x = 0; x < span; ++x)
        log(0, x) = gate(i, 0) + (by == By::none ? T{0} : log_factor(0, x));
      const auto row = [&](const Mat<T>& x) {
        return Rows<T>{x.view().slice(i, i + 1)};
      };
      causal_linear<T>(
          row(q), row(k), row(v),
          {by == By::none ? By::head : by, log.view(), i > 0 || before_first},
          denominator(z_rows), s_rows.view(), {rows.view().slice(i, i + 1)},
          scratch.data());
    }
    const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;
    expect_close(whole, rows, tolerance);
    expect_close(s, s_rows, tolerance);
    if (divides) expect_close(z, z_rows, tolerance);
  });
}

template <class T>
void expect_every_decay() {
  using By = typename Decay<T>::By;
  for (By by : {By::none, By::head, By::channel, By::column})
    for (bool before_first : {true, false})
      for (int64_t e : {1, 7, 40}) {
        expect_row_by_row<T>(by, before_first, false, 9, e);
        if (by != By::column) expect_row_by_row<T>(by, before_first, true, 33, e);
      }
}

TEST(Gates, FadeEachRowByItsOwnFactor) {
  expect_every_decay<float>();
  expect_every_decay<double>();
}

TEST(Gates, OfZeroChangeNoBit) {
  const auto q = Mat<float>::uniform(kRows, 9, 1, -1, 1);
  const auto k = Mat<float>::uniform(kRows, 9, 2, -1, 1);
  const auto v = Mat<float>::uniform(kRows, 40, 3, -1, 1);
  const auto log_factor = Mat<float>::uniform(1, 9, 7, -0.3, 0);
  const Mat<float> none(kRows, 1, 0.0F);
  using By = Decay<float>::By;
  for (By by : {By::none, By::head, By::channel})
    for_each_simd_target([&] {
      Mat<float> plain(kRows, 40), gated(kRows, 40), s(9, 40, 0.0F),
          s_gated(9, 40, 0.0F);
      std::vector<float> scratch(static_cast<size_t>(linear_scratch<float>(9, 40)));
      Decay<float> decay{by, log_factor.view().columns(0, by == By::channel ? 9 : 1)};
      causal_linear<float>({q.view()}, {k.view()}, {v.view()}, decay, {}, s.view(),
                           {plain.view()}, scratch.data());
      decay.log_gate = none.view();
      causal_linear<float>({q.view()}, {k.view()}, {v.view()}, decay, {},
                           s_gated.view(), {gated.view()}, scratch.data());
      expect_close(gated, plain, 0);
      expect_close(s_gated, s, 0);
    });
}

TEST(Gates, GradientIsASumFromBehindThatBordersEnd) {
  const auto q = Mat<float>::uniform(20, 19, 1, -1, 1),
             dq = Mat<float>::uniform(20, 19, 2, -1, 1);
  const auto k = Mat<float>::uniform(20, 19, 3, -1, 1),
             dk = Mat<float>::uniform(20, 19, 4, -1, 1);
  const auto weight = Mat<float>::uniform(20, 1, 5, 0, 1);
  Mat<float> gate(20, 1, -0.5F);
  gate(8, 0) = -std::numeric_limits<float>::infinity();
  Mat<double> want(20, 1, 0.25);
  double sum = 3.0;
  for (int64_t i = 19; i >= 0; --i) {
    for (int64_t j = 0; j < 19; ++j)
      sum += double{q(i, j)} * dq(i, j) - double{weight(i, 0)} * k(i, j) * dk(i, j);
    if (i == 8 || i == 0) sum = 0;
    want(i, 0) += sum;
  }
  for_each_simd_target([&] {
    Mat<float> got(20, 1, 0.25F);
    gate_gradient<float>(q.view(), dq.view(), k.view(), dk.view(), weight.view(),
                         gate.view(), true, 3.0, got.view());
    expect_close(got, want, 1e-6);
    EXPECT_EQ(got(8, 0), 0.25F);
    EXPECT_EQ(got(0, 0), 0.25F);
  });
}

TEST(Gates, SumTheProductsOfTwoMatrices) {
  for_each_simd_target([] {
    const auto expect_sum = [](auto zero) {
      using T = decltype(zero);
      const auto a = Mat<T>::uniform(5, 19, 1, -1, 1),
                 b = Mat<T>::uniform(5, 19, 2, -1, 1);
      double sum = 0;
      for (int64_t i = 0; i < 5; ++i)
        for (int64_t j = 0; j < 19; ++j) sum += double(a(i, j)) * double(b(i, j));
      EXPECT_NEAR(sum_of_products<T>(a.view(), b.view()), sum,
                  sizeof(T) == 4 ? 1e-5 : 1e-13);
      EXPECT_EQ(sum_of_products<T>(MatView<const T>{}, MatView<const T>{}), 0.0);
    };
    expect_sum(0.0f), expect_sum(0.0);
  });
}

}  // namespace
}  // namespace lagwise::kernels
