#include "lagwise/kernels/linear_step.h"

#include <algorithm>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

/// `n` steps must equal one call over n rows.
template <class T>
void expect_steps_equal_a_call(int64_t d, int64_t e, typename Decay<T>::By by,
                               bool divides, FeatureMap map, Storage storage) {
  using From = typename Denominator<T>::From;
  constexpr int64_t kRows = 40;
  const auto q = Mat<T>::uniform(kRows, d, 1, 0, 1),
             k = Mat<T>::uniform(kRows, d, 2, 0, 1);
  const auto v = Mat<T>::uniform(kRows, e, 3, -1, 1, storage);
  const auto s0 = Mat<T>::uniform(d, e, 4, -1, 1, storage);
  const auto z0 = Mat<T>::uniform(1, d, 5, 0, 1);
  const auto log_factor = Mat<T>::uniform(1, d, 6, -0.3, 0);
  const bool by_head = by == Decay<T>::By::head;
  const Decay<T> decay{by, log_factor.view().columns(0, by_head ? 1 : d)};
  for_each_simd_target([&] {
    Mat<T> whole(kRows, e), den(kRows, 1), s(s0), z(z0);
    std::vector<T> scratch(static_cast<size_t>(
        std::max(linear_scratch<T>(d, e), linear_step_scratch<T>(d, d))));
    Denominator<T> denominator;
    if (divides)
      denominator = {From::features, static_cast<T>(1e-6), false, den.view(), z.data()};
    causal_linear<T>({q.view(), map}, {k.view(), map}, {v.view()}, decay, denominator,
                     s.view(), {whole.view()}, scratch.data());

    Mat<T> stepped(kRows, e, storage), s1(s0), z1(z0);
    denominator.z = z1.data();
    for (int64_t i = 0; i < kRows; ++i) {
      const Rows<T> qi{q.view().slice(i, i + 1), map},
          ki{k.view().slice(i, i + 1), map};
      linear_step<T>(qi, ki, qi, ki, v.view().slice(i, i + 1), decay, denominator,
                     s1.view(), stepped.view().slice(i, i + 1), scratch.data());
    }
    const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;
    expect_close(stepped, whole, tolerance);
    expect_close(s1, s, tolerance);
    expect_close(z1, z, tolerance);
  });
}

template <class T>
void expect_for_every_shape() {
  using By = typename Decay<T>::By;
  for (int64_t d : {1, 7, 64})
    for (int64_t e : {1, 7, 40, 64})
      for (By by : {By::none, By::head, By::channel})
        for (bool divides : {false, true})
          expect_steps_equal_a_call<T>(d, e, by, divides, {FeatureMap::Kind::elu1},
                                       Storage::dense);
  for (Storage storage : lagwise::testing::kEveryStorage)
    expect_steps_equal_a_call<T>(7, 20, By::none, true, {}, storage);
}

TEST(LinearStep, RepeatedEqualsOneCallOverAllRows) {
  expect_for_every_shape<float>();
  expect_for_every_shape<double>();
}

TEST(LinearStep, TakesADenominatorOfOtherFeatures) {
  using From = Denominator<double>::From;
  const auto q = Mat<double>::uniform(1, 3, 1, -1, 1),
             k = Mat<double>::uniform(1, 3, 2, -1, 1);
  const auto qn = Mat<double>::uniform(1, 5, 3, 0, 1),
             kn = Mat<double>::uniform(1, 5, 4, 0, 1);
  const auto v = Mat<double>::uniform(1, 2, 5, -1, 1);
  Mat<double> s(3, 2, 0.0), z(1, 5, 0.5), out(1, 2);
  std::vector<double> scratch(static_cast<size_t>(linear_step_scratch<double>(3, 5)));
  linear_step<double>({q.view()}, {k.view()}, {qn.view()}, {kn.view()}, v.view(), {},
                      {From::features, 0.125, false, {}, z.data()}, s.view(),
                      out.view(), scratch.data());
  double score = 0, den = 0.125;
  for (int64_t d = 0; d < 3; ++d) score += q(0, d) * k(0, d);
  for (int64_t d = 0; d < 5; ++d) den += qn(0, d) * (0.5 + kn(0, d));
  for (int64_t e = 0; e < 2; ++e) EXPECT_NEAR(out(0, e), score * v(0, e) / den, 1e-14);
}

}  // namespace
}  // namespace lagwise::kernels
