#include "lagwise/kernels/favor.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::kEveryStorage;
using lagwise::testing::Mat;
using lagwise::testing::Storage;
using Kind = Favor::Kind;

struct Case {
  Kind kind;
  int64_t n, m, d;
};
constexpr Case kCases[] = {
    {Kind::positive, 1, 1, 1},    {Kind::positive, 7, 6, 4},
    {Kind::positive, 53, 37, 19}, {Kind::positive, 50, 64, 32},
    {Kind::two_sided, 7, 6, 4},   {Kind::two_sided, 49, 33, 5},
    {Kind::relu, 7, 6, 4},        {Kind::relu, 30, 40, 17},
    {Kind::positive, 0, 3, 2},
};

template <class T>
struct Result {
  Mat<T> y, log_scale;
};

/// The definition in double.
Result<double> by_definition(const Favor& favor, const Mat<double>& x,
                             const Mat<double>& w) {
  const int64_t m = w.rows(), d = w.cols(), f = favor.width(m);
  Result<double> to{Mat<double>(x.rows(), f), Mat<double>(x.rows(), 1)};
  for (int64_t i = 0; i < x.rows(); ++i) {
    std::vector<double> e(static_cast<size_t>(f));
    double norm = 0, c = -std::numeric_limits<double>::infinity();
    for (int64_t a = 0; a < d; ++a) norm += x(i, a) * x(i, a);
    for (int64_t j = 0; j < f; ++j) {
      double u = 0;
      for (int64_t a = 0; a < d; ++a) u += w(j % m, a) * x(i, a);
      u *= (j < m ? 1 : -1) / std::pow(static_cast<double>(d), 0.25);
      e[static_cast<size_t>(j)] = u;
      c = std::max(c, u);
    }
    for (int64_t j = 0; j < f; ++j) {
      const double u = e[static_cast<size_t>(j)];
      to.y(i, j) =
          favor.kind == Kind::relu ? std::max(u, 0.0) + favor.offset : std::exp(u - c);
    }
    to.log_scale(i, 0) = c - norm / (2 * std::sqrt(static_cast<double>(d))) -
                         std::log(static_cast<double>(f)) / 2;
  }
  return to;
}

template <class T>
std::vector<T> packed(MatView<const T> b, int64_t d) {
  std::vector<T> to(static_cast<size_t>(packed_size<T>(b.rows, b.cols)));
  pack_panels<T>(b, static_cast<T>(std::pow(static_cast<double>(d), -0.25)), to.data());
  return to;
}

/// The kernel, with rows handed over in two parts.
template <class T>
Result<T> run(const Favor& favor, const Mat<T>& x, const Mat<T>& w, int64_t cut = 0) {
  const int64_t m = w.rows(), d = w.cols();
  Result<T> to{Mat<T>(x.rows(), favor.width(m), Storage::padded),
               Mat<T>(x.rows(), 1, Storage::padded)};
  const auto right = packed<T>(w.view().transposed(), d);
  std::vector<T> scratch(static_cast<size_t>(favor_scratch<T>(m, d)));
  for (auto [begin, end] : {std::pair{int64_t{0}, cut}, std::pair{cut, x.rows()}})
    favor_rows<T>(
        favor, x.view().slice(begin, end), right.data(), m,
        to.y.view().slice(begin, end),
        favor.kind == Kind::relu ? MatView<T>{} : to.log_scale.view().slice(begin, end),
        scratch.data());
  return to;
}

template <class T>
Mat<T> run_gradient(const Favor& favor, const Mat<T>& x, const Mat<T>& w,
                    const Mat<T>& dy, const Mat<T>& dlog_scale) {
  const int64_t m = w.rows(), d = w.cols();
  const Result<T> at = run(favor, x, w);
  Mat<T> dx(x.rows(), d, Storage::padded);
  const auto right = packed<T>(w.view(), d);
  std::vector<T> scratch(static_cast<size_t>(favor_scratch<T>(m, d)));
  favor_rows_gradient<T>(
      favor, x.view(), at.y.view(), dy.view(),
      favor.kind == Kind::relu ? MatView<const T>{} : dlog_scale.view(), right.data(),
      m, dx.view(), scratch.data());
  return dx;
}

template <class T>
void expect_defined(const Case& c, Storage storage, double tolerance) {
  const Favor favor{c.kind, 0.125};
  const auto x = Mat<T>::uniform(c.n, c.d, 1, -2, 2, storage);
  const auto w = Mat<T>::uniform(c.m, c.d, 2, -2, 2);
  Mat<double> x64(c.n, c.d), w64(c.m, c.d);
  for (int64_t i = 0; i < c.n; ++i)
    for (int64_t j = 0; j < c.d; ++j) x64(i, j) = x(i, j);
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.d; ++j) w64(i, j) = w(i, j);
  const Result<double> want = by_definition(favor, x64, w64);
  const Result<T> got = run(favor, x, w);
  expect_close(got.y, want.y, tolerance);
  if (c.kind != Kind::relu) expect_close(got.log_scale, want.log_scale, tolerance);
}

TEST(FavorRows, AreTheDefinitionOnEverySimdTarget) {
  for (const Case& c : kCases)
    for (Storage storage : kEveryStorage)
      for_each_simd_target([&] {
        expect_defined<float>(c, storage, 3e-6);
        expect_defined<double>(c, storage, 1e-13);
      });
}

TEST(FavorRows, HaveTheSameBitsHoweverTheyAreSplit) {
  const Favor favor;
  const auto x = Mat<float>::uniform(61, 9, 1, -2, 2);
  const auto w = Mat<float>::uniform(21, 9, 2, -2, 2);
  for_each_simd_target([&] {
    const auto whole = run(favor, x, w), parts = run(favor, x, w, 31);
    expect_close(parts.y, whole.y, 0);
    expect_close(parts.log_scale, whole.log_scale, 0);
  });
}

TEST(FavorRows, NeverOverflowAndHaveOneAsTheirLargest) {
  const Favor favor;
  const auto x = Mat<float>::uniform(5, 8, 1, -300, 300);
  const auto w = Mat<float>::uniform(16, 8, 2, -9, 9);
  for_each_simd_target([&] {
    const auto got = run(favor, x, w);
    for (int64_t i = 0; i < x.rows(); ++i) {
      float top = 0;
      for (int64_t j = 0; j < w.rows(); ++j) top = std::max(top, got.y(i, j));
      EXPECT_EQ(top, 1.0f);
      EXPECT_TRUE(std::isfinite(got.log_scale(i, 0)));
    }
  });
}

TEST(FavorRows, HandOnNan) {
  auto x = Mat<float>::uniform(3, 4, 1, -1, 1);
  x(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const auto w = Mat<float>::uniform(20, 4, 2, -1, 1);
  for_each_simd_target([&] {
    const auto got = run<float>({}, x, w);
    EXPECT_TRUE(std::isnan(got.log_scale(1, 0)));
    EXPECT_TRUE(std::isnan(got.y(1, 0)) && std::isnan(got.y(1, 19)));
    EXPECT_TRUE(std::isfinite(got.y(0, 0)) && std::isfinite(got.y(2, 0)));
  });
}

/// Central differences of <y, dy> + <log_scale, dlog_scale> by every number of x.
TEST(FavorRows, GradientIsThatOfTheDefinitionOnEverySimdTarget) {
  for (const Case& c : kCases) {
    const Favor favor{c.kind, 0.125};
    const auto w = Mat<double>::uniform(c.m, c.d, 2, -2, 2);
    const auto dy = Mat<double>::uniform(c.n, favor.width(c.m), 3, -1, 1);
    const auto dlog_scale = Mat<double>::uniform(c.n, 1, 4, -1, 1);
    const auto x = Mat<double>::uniform(c.n, c.d, 1, -2, 2);
    Mat<double> alone(1, c.d);  // a row of x: no row depends on another
    const auto loss = [&](int64_t row) {
      const Result<double> at = by_definition(favor, alone, w);
      double sum = 0;
      for (int64_t j = 0; j < dy.cols(); ++j) sum += at.y(0, j) * dy(row, j);
      if (c.kind == Kind::relu) return sum;
      return sum + at.log_scale(0, 0) * dlog_scale(row, 0);
    };
    Mat<double> want(c.n, c.d);
    constexpr double kStep = 1e-6;
    for (int64_t i = 0; i < c.n; ++i) {
      for (int64_t j = 0; j < c.d; ++j) alone(0, j) = x(i, j);
      for (int64_t j = 0; j < c.d; ++j) {
        alone(0, j) = x(i, j) + kStep;
        const double up = loss(i);
        alone(0, j) = x(i, j) - kStep;
        want(i, j) = (up - loss(i)) / (2 * kStep);
        alone(0, j) = x(i, j);
      }
    }
    for_each_simd_target(
        [&] { expect_close(run_gradient(favor, x, w, dy, dlog_scale), want, 1e-7); });
  }
}

}  // namespace
}  // namespace lagwise::kernels
