#include "lagwise/kernels/sine_spe.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using testing::expect_close;
using testing::for_each_simd_target;
using testing::Mat;
using testing::Storage;

struct Problem {
  int64_t batch, n, d, sines, width;
  bool gated, dense;
  Storage storage = Storage::dense;
  double start = 0, step = 1;  // positions start + i step

  int64_t waves() const { return 2 * sines + (gated ? 1 : 0); }
};

double number(uint64_t seed, int64_t i, int64_t j = 0) {
  return 2 * Noise(seed).at({.feature = i}).uniform(j) - 1;
}

/// Everything a call reads, in double and in T.
template <class T>
struct Case {
  explicit Case(const Problem& p)
      : p(p),
        x(Mat<T>::uniform(p.batch * p.n, p.d, 1, -1, 1, p.storage)),
        dy(Mat<T>::uniform(p.batch * p.n, p.width, 2, -1, 1, p.storage)) {
    const int64_t pairs = p.d * p.sines, features = p.d * p.waves();
    for (int64_t i = 0; i < pairs; ++i) {
      frequency.push_back(0.25 + 0.24 * number(3, i));
      amplitude.push_back(number(4, i));
      phase.push_back(0.5 * number(5, i));
    }
    for (int64_t d = 0; d < p.d; ++d) constant.push_back(number(6, d));
    for (int64_t i = 0; i < p.n; ++i)
      positions.push_back(p.start + p.step * static_cast<double>(i));
    for (int64_t f = 0; f < features; ++f) {
      const auto bin =
          static_cast<int64_t>((number(7, f) + 1) / 2 * static_cast<double>(p.width));
      fold.push_back(number(8, f) < 0 ? -(bin + 1) : bin + 1);
    }
    for (int64_t i = 0; i < pairs * 2 * p.width; ++i)
      z.push_back(static_cast<T>(number(9, i)));
    for (int64_t i = 0; i < p.d * p.width; ++i)
      gate.push_back(static_cast<T>(number(10, i)));
  }

  SineHead head() const {
    return {p.d, p.sines, frequency.data(), amplitude.data(),
            p.gated ? constant.data() : nullptr};
  }
  SineMix<T> mix() const {
    if (!p.dense) return {p.width, nullptr, nullptr, fold.data()};
    return {p.width, z.data(), p.gated ? gate.data() : nullptr, nullptr};
  }
  SineSide side() const { return {positions.data(), p.n, phase.data()}; }
  /// A matrix whose rows are those of one batch row after another.
  template <class Q, class M>
  SineRows<Q> rows(M& m) const {
    const auto view = m.view();
    return {view.data, p.batch, p.n * view.row_step, view.row_step, view.col_step};
  }

  /// The matrix M that u is multiplied by. [F, width]
  double mixed(int64_t d, int64_t i, int64_t r) const {
    if (!p.dense) {
      const int64_t place = fold[static_cast<size_t>(d * p.waves() + i)];
      return std::abs(place) - 1 == r ? (place < 0 ? -1.0 : 1.0) : 0.0;
    }
    if (i == 2 * p.sines) return gate[static_cast<size_t>(d * p.width + r)];
    return z[static_cast<size_t>((d * 2 * p.sines + i) * p.width + r)];
  }
  double angle(int64_t n, int64_t d, int64_t k) const {
    const auto pair = static_cast<size_t>(d * p.sines + k);
    // f n as an exact sum of two doubles: one alone is 1e-9 of a turn off at 10^7.
    const double f = frequency[pair], at = positions[static_cast<size_t>(n)];
    const double high = f * at, low = std::fma(f, at, -high);
    const double turns = (high - std::round(high)) + low + phase[pair];
    return 2 * std::numbers::pi * (turns - std::round(turns));
  }
  double wave(int64_t n, int64_t d, int64_t i) const {
    if (i == 2 * p.sines) return constant[static_cast<size_t>(d)];
    const double a = amplitude[static_cast<size_t>(d * p.sines + i / 2)];
    return a *
           (i % 2 == 0 ? std::cos(angle(n, d, i / 2)) : std::sin(angle(n, d, i / 2)));
  }

  Problem p;
  Mat<T> x, dy;
  std::vector<double> frequency, amplitude, phase, constant, positions;
  std::vector<int64_t> fold;
  std::vector<T> z, gate;
};

template <class T>
struct Scratch {
  explicit Scratch(const Case<T>& c) {
    const auto size = sine_scratch<T>(c.head(), c.mix(), c.p.batch);
    reals.assign(static_cast<size_t>(size.reals), T(NAN));
    doubles.assign(static_cast<size_t>(size.doubles), NAN);
    scratch = {reals.data(), doubles.data()};
  }
  std::vector<T> reals;
  std::vector<double> doubles;
  SineScratch<T> scratch;
};

// y_r(n) = sum_d sum_i x_d w_i(n) M_{di, r}
template <class T>
Mat<double> encoded_by_definition(const Case<T>& c) {
  Mat<double> y(c.p.batch * c.p.n, c.p.width, 0.0);
  for (int64_t row = 0; row < y.rows(); ++row)
    for (int64_t d = 0; d < c.p.d; ++d)
      for (int64_t i = 0; i < c.p.waves(); ++i) {
        const double u = c.x(row, d) * c.wave(row % c.p.n, d, i);
        for (int64_t r = 0; r < c.p.width; ++r) y(row, r) += u * c.mixed(d, i, r);
      }
  return y;
}

template <class T>
Mat<T> encoded(const Case<T>& c) {
  Mat<T> y(c.p.batch * c.p.n, c.p.width, c.p.storage);
  Scratch<T> s(c);
  sine_encode<T>(c.head(), c.mix(), c.side(), c.template rows<const T>(c.x),
                 c.template rows<T>(y), s.scratch);
  return y;
}

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const bool dense : {true, false})
    for (const bool gated : {true, false})
      for (const int64_t batch : {1, 3}) {
        all.push_back({batch, 1, 5, 2, 7, gated, dense});
        all.push_back({batch, 3, 3, 1, 64, gated, dense});
        all.push_back({batch, 37, 11, 3, 21, gated, dense, Storage::padded});
        all.push_back({batch, 70, 19, 2, 16, gated, dense, Storage::transposed, 1e6});
        all.push_back({batch, 33, 4, 5, 33, gated, dense, Storage::spread, -40});
        all.push_back({batch, 41, 4, 2, 9, gated, dense, Storage::dense, 5, 2.5});
      }
  return all;
}

std::string describe(const Problem& p) {
  return "B" + std::to_string(p.batch) + " N" + std::to_string(p.n) + " D" +
         std::to_string(p.d) + " K" + std::to_string(p.sines) + " R" +
         std::to_string(p.width) + (p.gated ? " gated" : "") +
         (p.dense ? " dense" : " fold") + " from " + std::to_string(p.start);
}

template <class T>
void expect_values(double tolerance) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(describe(p));
    const Case<T> c(p);
    const Mat<double> want = encoded_by_definition(c);
    for_each_simd_target([&] { expect_close(encoded(c), want, tolerance); });
  }
}

TEST(SineSpeKernel, MatchesTheDefinitionInDouble) { expect_values<double>(1e-12); }
TEST(SineSpeKernel, MatchesTheDefinitionInFloat) { expect_values<float>(2e-6); }

// One feature, one sine, fold of two: the outputs are the waves themselves.
template <class T>
double worst_wave(double start, double step) {
  Problem p{1, 400, 1, 1, 2, false, false, Storage::dense, start, step};
  Case<T> c(p);
  c.fold = {1, 2};
  c.amplitude = {1};
  for (int64_t i = 0; i < p.n; ++i) c.x(i, 0) = 1;
  double worst = 0;
  for (const double f : {0.4999, 0.0123456789, 0.25000001, 1e-5}) {
    c.frequency = {f};
    const Mat<double> want = encoded_by_definition(c);
    const Mat<T> got = encoded(c);
    for (int64_t i = 0; i < p.n; ++i)
      for (int64_t j = 0; j < 2; ++j)
        worst = std::max(worst, std::abs(double(got(i, j)) - want(i, j)));
  }
  return worst;
}

TEST(SineSpeKernel, HoldsItsWavesAtAnyPosition) {
  for (const double start : {0.0, 1e3, 1e6, 1e7, -1e7, 1e8}) {
    for (const double step : {1.0, 3.0}) {
      EXPECT_LE(worst_wave<float>(start, step), 1e-6) << "from " << start;
      EXPECT_LE(worst_wave<double>(start, step), 1e-12) << "from " << start;
    }
  }
}

TEST(SineSpeKernel, SharesItsScratchBetweenQueriesAndKeys) {
  const Case<float> c({1, 45, 9, 2, 16, true, true});
  const Mat<float> alone = encoded(c);
  Mat<float> first(45, 16), second(45, 16), third(45, 16);
  Scratch<float> s(c);
  std::vector<double> apart = c.positions;
  apart[7] = 100;  // does not count up: uses the table of steps for itself
  const auto run = [&](const double* positions, Mat<float>& y) {
    sine_encode<float>(c.head(), c.mix(), {positions, 45, c.phase.data()},
                       c.rows<const float>(c.x), c.rows<float>(y), s.scratch);
  };
  run(c.positions.data(), first);
  run(apart.data(), second);
  run(c.positions.data(), third);
  expect_close(first, alone, 0);
  expect_close(third, alone, 0);
}

// All gradients by the formulas in the header, summed in double.
template <class T>
void expect_gradients(const Case<T>& c, double tolerance) {
  const Problem& p = c.p;
  Mat<double> dx(p.batch * p.n, p.d, 0.0), df(p.d, p.sines, 0.0), da(p.d, p.sines, 0.0);
  Mat<double> dp(p.d, p.sines, 0.0), dc(p.d, 1, 0.0);
  for (int64_t row = 0; row < dx.rows(); ++row)
    for (int64_t d = 0; d < p.d; ++d) {
      const auto g = [&](int64_t i) {
        double sum = 0;
        for (int64_t r = 0; r < p.width; ++r) sum += c.dy(row, r) * c.mixed(d, i, r);
        return sum;
      };
      const double x = c.x(row, d);
      for (int64_t k = 0; k < p.sines; ++k) {
        const double angle = c.angle(row % p.n, d, k), gc = g(2 * k), gs = g(2 * k + 1);
        const double a = c.amplitude[static_cast<size_t>(d * p.sines + k)];
        const double along = std::cos(angle) * gc + std::sin(angle) * gs;
        const double turn = 2 * std::numbers::pi * x * a *
                            (std::cos(angle) * gs - std::sin(angle) * gc);
        dx(row, d) += a * along;
        da(d, k) += x * along;
        dp(d, k) += turn;
        df(d, k) += turn * c.positions[static_cast<size_t>(row % p.n)];
      }
      if (!p.gated) continue;
      dx(row, d) += c.constant[static_cast<size_t>(d)] * g(2 * p.sines);
      dc(d, 0) += x * g(2 * p.sines);
    }

  Mat<T> got_dx(p.batch * p.n, p.d, p.storage);
  Mat<double> got_df(p.d, p.sines, 0.0), got_da(p.d, p.sines, 0.0);
  Mat<double> got_dp(p.d, p.sines, 0.0), got_dc(p.d, 1, 0.0);
  Scratch<T> s(c);
  sine_gradient<T>(c.head(), c.mix(), c.side(), c.template rows<const T>(c.x),
                   c.template rows<const T>(c.dy), c.template rows<T>(got_dx),
                   {got_df.data(), got_da.data(), got_dp.data(), got_dc.data()},
                   s.scratch);
  expect_close(got_dx, dx, tolerance);
  expect_close(got_df, df, 4 * tolerance);
  expect_close(got_da, da, 4 * tolerance);
  expect_close(got_dp, dp, 4 * tolerance);
  expect_close(got_dc, dc, 4 * tolerance);
}

TEST(SineSpeKernel, GivesTheGradientsOfTheDefinition) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(describe(p));
    const Case<float> few(p);
    const Case<double> many(p);
    for_each_simd_target([&] {
      expect_gradients(few, 4e-6);
      expect_gradients(many, 1e-12);
    });
  }
}

}  // namespace
}  // namespace lagwise::kernels
