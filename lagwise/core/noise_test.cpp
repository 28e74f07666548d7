#include "lagwise/core/noise.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>
#include <stdexcept>
#include <vector>

namespace lagwise {
namespace {

// Statistical gates run on all of these; none was chosen after the fact.
constexpr uint64_t kSeeds[] = {1, 2, 3, 4, 5};
constexpr int64_t kMany = 100000;
constexpr double kSigmas = 5.0;

using Fill = void (NoiseRow::*)(int64_t, std::span<double>) const;
using Draw = double (NoiseRow::*)(int64_t) const;

std::vector<double> draws(const NoiseRow& row, Fill fill, int64_t count = kMany) {
  std::vector<double> x(static_cast<size_t>(count));
  (row.*fill)(0, x);
  return x;
}

double mean_of(const std::vector<double>& x, const std::function<double(double)>& f) {
  double sum = 0.0;
  for (double each : x) sum += f(each);
  return sum / static_cast<double>(x.size());
}

// The mean of x_i y_i in units of its standard error, for unit variances.
double correlation_in_sigmas(const std::vector<double>& x,
                             const std::vector<double>& y) {
  double sum = 0.0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum / std::sqrt(static_cast<double>(x.size()));
}

// The largest gap between the empirical and the given distribution, times
// sqrt(n). Kolmogorov's law: it exceeds 2.75 with probability 5e-7, as rarely as
// a normal exceeds 5 sigma.
constexpr double kKolmogorovGate = 2.75;
double kolmogorov(std::vector<double> x, const std::function<double(double)>& law) {
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double gap = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double p = law(x[i]), below = static_cast<double>(i) / n;
    gap = std::max({gap, p - below, below + 1 / n - p});
  }
  return gap * std::sqrt(n);
}

double normal_law(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// The test vectors published with Random123 (tests/kat_vectors).
TEST(Philox, GivesThePublishedAnswers) {
  using P4 = r123::Philox4x32;
  const auto p4 = [](P4::ctr_type counter, P4::key_type key) {
    return P4()(counter, key);
  };
  EXPECT_EQ(p4({{0, 0, 0, 0}}, {{0, 0}}),
            (P4::ctr_type{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(p4({{kOnes, kOnes, kOnes, kOnes}}, {{kOnes, kOnes}}),
            (P4::ctr_type{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  EXPECT_EQ(p4({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
               {{0xa4093822, 0x299f31d0}}),
            (P4::ctr_type{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));

  using P2 = r123::Philox2x32;
  EXPECT_EQ(P2()({{0, 0}}, {{0}}), (P2::ctr_type{{0xff1dae59, 0x6cd10df2}}));
  EXPECT_EQ(P2()({{0x243f6a88, 0x85a308d3}}, {{0x13198a2e}}),
            (P2::ctr_type{{0xdd7ce038, 0xf62a4c12}}));
}

// The header's definition, spelled out for one row and one block of positions.
TEST(Noise, IsTheDocumentedFunctionOfItsCoordinates) {
  const uint64_t seed = 0x0123456789abcdef;
  const NoiseRow row =
      Noise(seed, 7, 1000, 3)
          .at({.layer = 5, .head = 11, .feature = 63, .realisation = 1023});

  const r123::Philox2x32 p2;
  const auto key = p2(p2({{1000, 7u << 16 | 3u}}, {{0x89abcdef}}), {{0x01234567}});
  const auto words = [&](uint32_t kind, uint32_t index) {
    return r123::Philox4x32()(
        {{index, 5u << 16 | kind << 14, 63u << 24 | 1023u, 11u << 16 | 63u >> 8}},
        {{key[0], key[1]}});
  };
  const auto u = [](uint32_t w) { return (w + 0.5) / 4294967296.0; };

  const auto a = words(0, 9), b = words(1, 9), c = words(2, 9);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(row.uniform(36 + i), u(a[i]));
    EXPECT_EQ(row.sign(36 + i), c[i] >= 0x80000000u ? 1.0 : -1.0);
  }
  for (uint32_t i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2 * std::log(u(b[i])));
    const double angle = 2 * std::numbers::pi * u(b[i + 1]);
    EXPECT_NEAR(row.normal(36 + i), radius * std::cos(angle), 1e-14);
    EXPECT_NEAR(row.normal(37 + i), radius * std::sin(angle), 1e-14);
  }
}

// A run must be repeatable on another machine and years later, so these numbers
// never change. If this test fails, the code is wrong, not the numbers.
TEST(Noise, GivesTheSameBitsForEver) {
  const NoiseRow row =
      Noise(42, 7, 1000, 3)
          .at({.layer = 5, .head = 11, .feature = 63, .realisation = 1023});
  const struct {
    int64_t position;
    double uniform, normal, sign;
  } pinned[] = {
      {-5, 0x1.51bfede9p-1, 0x1.0dca7e88a42cap-3, 1},
      {0, 0x1.9d1c2fd6p-2, 0x1.ef87aca9e3898p-1, -1},
      {1, 0x1.a17cd8d2p-2, 0x1.c76763ce09daep+0, -1},
      {2, 0x1.ce5f7ff3p-1, -0x1.5de058b538c2fp-2, 1},
      {10000000, 0x1.9525f331p-1, -0x1.304235df2be7dp+0, 1},
      {4294967299, 0x1.c0cf64c8p-4, -0x1.360ba077a0024p+1, -1},
  };
  for (const auto& want : pinned) {
    EXPECT_EQ(row.uniform(want.position), want.uniform) << want.position;
    EXPECT_EQ(row.normal(want.position), want.normal) << want.position;
    EXPECT_EQ(row.sign(want.position), want.sign) << want.position;
  }
}

// Every bit of many normals at once; pins the series over their whole range.
TEST(Noise, GivesTheSameNormalsForEver) {
  uint64_t digest = 0;
  for (double x : draws(Noise(1).at({}), &NoiseRow::fill_normal))
    digest = digest * 6364136223846793005u + std::bit_cast<uint64_t>(x);
  EXPECT_EQ(digest, 10236100986117525542u);
}

template <class T>
void expect_fill_equals_draws(void (NoiseRow::*fill)(int64_t, std::span<T>) const,
                              Draw draw) {
  const NoiseRow row = Noise(3, 1).at({.head = 2});
  for (int64_t first : {int64_t{-6}, int64_t{-1}, int64_t{0}, int64_t{3},
                        (int64_t{1} << 32) - 2, (int64_t{1} << 47) - 11}) {
    for (size_t count = 0; count <= 11; ++count) {
      std::vector<T> out(count);
      (row.*fill)(first, out);
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], static_cast<T>((row.*draw)(first + static_cast<int64_t>(i))))
            << first << " " << i;
    }
  }
}

TEST(Noise, FillsEqualSingleDrawsWhereverTheyBeginAndEnd) {
  expect_fill_equals_draws<float>(&NoiseRow::fill_uniform, &NoiseRow::uniform);
  expect_fill_equals_draws<float>(&NoiseRow::fill_normal, &NoiseRow::normal);
  expect_fill_equals_draws<float>(&NoiseRow::fill_sign, &NoiseRow::sign);
  expect_fill_equals_draws<double>(&NoiseRow::fill_uniform, &NoiseRow::uniform);
  expect_fill_equals_draws<double>(&NoiseRow::fill_normal, &NoiseRow::normal);
  expect_fill_equals_draws<double>(&NoiseRow::fill_sign, &NoiseRow::sign);
}

TEST(Noise, DoesNotDependOnTheOrderOfDrawing) {
  const NoiseRow row = Noise(1).at({});
  const double late = row.normal(999), early = row.normal(0);
  EXPECT_EQ(Noise(1).at({}).normal(0), early);
  EXPECT_EQ(Noise(1).at({}).normal(999), late);
}

// 128 random bits, which name the block they come from.
std::vector<double> fingerprint(uint64_t seed, int64_t stream, int64_t step,
                                int64_t micro_step, NoiseAt at, int64_t position) {
  std::vector<double> x(4);
  Noise(seed, stream, step, micro_step).at(at).fill_uniform<double>(position, x);
  return x;
}

// Each coordinate in turn takes every power of two it has room for; a field that
// overlapped another, or lost a bit, would give the same block twice.
TEST(Noise, DiffersWhereverACoordinateDiffers) {
  std::set<std::vector<double>> seen;
  size_t count = 0;
  const auto see = [&](auto... coordinates) {
    seen.insert(fingerprint(coordinates...));
    ++count;
  };
  see(0u, 0, 0, 0, NoiseAt{}, 0);
  for (int bit = 0; bit < 64; ++bit) see(uint64_t{1} << bit, 0, 0, 0, NoiseAt{}, 0);
  for (int64_t x = 1; x < 1 << 16; x *= 2) {
    see(0u, x, 0, 0, NoiseAt{}, 0);
    see(0u, 0, 0, x, NoiseAt{}, 0);
    see(0u, 0, 0, 0, NoiseAt{.layer = x}, 0);
    see(0u, 0, 0, 0, NoiseAt{.head = x}, 0);
  }
  for (int64_t x = 1; x < 1 << 24; x *= 2) {
    see(0u, 0, 0, 0, NoiseAt{.feature = x}, 0);
    see(0u, 0, 0, 0, NoiseAt{.realisation = x}, 0);
  }
  for (int64_t x = 1; x < int64_t{1} << 32; x *= 2) see(0u, 0, x, 0, NoiseAt{}, 0);
  for (int64_t x = 4; x < int64_t{1} << 47; x *= 2) {
    see(0u, 0, 0, 0, NoiseAt{}, x);
    see(0u, 0, 0, 0, NoiseAt{}, -x);
  }
  EXPECT_EQ(seen.size(), count);
}

TEST(Noise, RefusesCoordinatesOutOfRange) {
  const Noise noise(1);
  EXPECT_THROW(Noise(1, 1 << 16), std::invalid_argument);
  EXPECT_THROW(Noise(1, 0, int64_t{1} << 32), std::invalid_argument);
  EXPECT_THROW(Noise(1, 0, 0, 1 << 16), std::invalid_argument);
  EXPECT_THROW(Noise(1, -1), std::invalid_argument);
  EXPECT_THROW(noise.at({.layer = 1 << 16}), std::invalid_argument);
  EXPECT_THROW(noise.at({.head = -1}), std::invalid_argument);
  EXPECT_THROW(noise.at({.feature = 1 << 24}), std::invalid_argument);
  EXPECT_THROW(noise.at({.realisation = 1 << 24}), std::invalid_argument);
  constexpr int64_t kEnd = int64_t{1} << 47;
  EXPECT_THROW(noise.at({}).uniform(kEnd), std::invalid_argument);
  EXPECT_THROW(noise.at({}).normal(-kEnd - 1), std::invalid_argument);
  EXPECT_THROW(noise.at({}).sign(INT64_MIN), std::invalid_argument);
  std::vector<float> two(2);
  EXPECT_THROW(noise.at({}).fill_sign<float>(kEnd - 1, two), std::invalid_argument);
  noise.at({}).fill_sign<float>(kEnd - 2, two);
  noise.at({}).sign(-kEnd);
}

TEST(Noise, UniformDrawsFollowTheUniformLaw) {
  for (uint64_t seed : kSeeds) {
    const auto x = draws(Noise(seed).at({}), &NoiseRow::fill_uniform);
    EXPECT_LT(kolmogorov(x, [](double u) { return u; }), kKolmogorovGate) << seed;
    EXPECT_GT(*std::min_element(x.begin(), x.end()), 0.0);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1.0);
  }
}

TEST(Noise, NormalDrawsFollowTheNormalLaw) {
  for (uint64_t seed : kSeeds) {
    const auto x = draws(Noise(seed).at({}), &NoiseRow::fill_normal);
    EXPECT_LT(kolmogorov(x, normal_law), kKolmogorovGate) << seed;
    // Each of the four words of a block has its own part in the transform.
    for (size_t lane = 0; lane < 4; ++lane) {
      std::vector<double> every_fourth;
      for (size_t i = lane; i < x.size(); i += 4) every_fourth.push_back(x[i]);
      EXPECT_LT(kolmogorov(every_fourth, normal_law), kKolmogorovGate) << seed;
    }
  }
}

TEST(Noise, NormalDrawsHaveTheMomentsOfTheNormalLaw) {
  const double error = kSigmas / std::sqrt(static_cast<double>(kMany));
  for (uint64_t seed : kSeeds) {
    const auto x = draws(Noise(seed).at({}), &NoiseRow::fill_normal);
    // Var x^k is 1, 2, 15 and 96 for k = 1, 2, 3, 4.
    EXPECT_NEAR(mean_of(x, [](double y) { return y; }), 0, error);
    EXPECT_NEAR(mean_of(x, [](double y) { return y * y; }), 1, error * std::sqrt(2));
    EXPECT_NEAR(mean_of(x, [](double y) { return y * y * y; }), 0,
                error * std::sqrt(15));
    EXPECT_NEAR(mean_of(x, [](double y) { return std::pow(y, 4); }), 3,
                error * std::sqrt(96));
  }
}

TEST(Noise, SignsAreBalanced) {
  const double error = kSigmas / std::sqrt(static_cast<double>(kMany));
  for (uint64_t seed : kSeeds) {
    const auto x = draws(Noise(seed).at({}), &NoiseRow::fill_sign);
    EXPECT_NEAR(mean_of(x, [](double y) { return y; }), 0, error);
    EXPECT_EQ(mean_of(x, [](double y) { return y * y; }), 1);
  }
}

TEST(Noise, NeighboursInEveryCoordinateAreUncorrelated) {
  for (uint64_t seed : kSeeds) {
    const auto normals = [](const NoiseRow& row) {
      return draws(row, &NoiseRow::fill_normal);
    };
    const auto x = normals(Noise(seed).at({}));
    std::vector<double> later(x.size());
    Noise(seed).at({}).fill_normal<double>(1, later);
    for (const auto& y :
         {later, normals(Noise(seed + 1).at({})), normals(Noise(seed, 1).at({})),
          normals(Noise(seed, 0, 1).at({})), normals(Noise(seed, 0, 0, 1).at({})),
          normals(Noise(seed).at({.layer = 1})), normals(Noise(seed).at({.head = 1})),
          normals(Noise(seed).at({.feature = 1})),
          normals(Noise(seed).at({.realisation = 1}))})
      EXPECT_LT(std::abs(correlation_in_sigmas(x, y)), kSigmas) << seed;
  }
}

TEST(Noise, TheKindsAreUncorrelated) {
  for (uint64_t seed : kSeeds) {
    const NoiseRow row = Noise(seed).at({});
    auto u = draws(row, &NoiseRow::fill_uniform);
    for (double& x : u) x = (x - 0.5) * std::sqrt(12.0);
    const auto n = draws(row, &NoiseRow::fill_normal);
    const auto s = draws(row, &NoiseRow::fill_sign);
    EXPECT_LT(std::abs(correlation_in_sigmas(u, n)), kSigmas) << seed;
    EXPECT_LT(std::abs(correlation_in_sigmas(u, s)), kSigmas) << seed;
    EXPECT_LT(std::abs(correlation_in_sigmas(n, s)), kSigmas) << seed;
  }
}

}  // namespace
}  // namespace lagwise
