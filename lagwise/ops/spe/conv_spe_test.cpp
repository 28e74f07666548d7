#include "lagwise/ops/conv_spe.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "lagwise/ops/spe/conv_spe_noise.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

/// Normal numbers that depend on the seed alone.
Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  const Tensor x = at::empty(sizes, at::kDouble);
  Noise(seed).at({}).fill_normal<double>(
      0, {x.data_ptr<double>(), static_cast<size_t>(x.numel())});
  return x;
}

struct Inputs {
  Tensor q, k, query_kernel, key_kernel;
  Inputs to(at::ScalarType type) const {
    return {q.to(type), k.to(type), query_kernel.to(type), key_kernel.to(type)};
  }
};

Inputs inputs(int64_t b, int64_t h, int64_t n, int64_t m, int64_t d,
              const std::vector<int64_t>& taps) {
  std::vector<int64_t> sizes = {h * d, 1};
  sizes.insert(sizes.end(), taps.begin(), taps.end());
  return {normal({b, h, n, d}, 1), normal({b, h, m, d}, 2), normal(sizes, 3),
          normal(sizes, 4)};
}

std::tuple<Tensor, Tensor> run(const Inputs& in, const ConvSpeOptions& options) {
  return conv_spe(in.q, in.k, in.query_kernel, in.key_kernel, options);
}

/// The definition on a line, sample by sample.
Tensor on_a_line(const Tensor& x, const Tensor& kernel, int64_t start,
                 const ConvSpeOptions& o) {
  const int64_t b = x.size(0), h = x.size(1), n = x.size(2), d = x.size(3);
  const Tensor out = at::zeros({b, h, n, o.realizations}, at::kDouble);
  const auto a = kernel.accessor<double, 3>();
  const auto from = x.accessor<double, 4>();
  auto to = out.accessor<double, 4>();
  const double scale = std::pow(static_cast<double>(o.realizations * d), -0.25);
  for (int64_t i = 0; i < h; ++i)
    for (int64_t f = 0; f < d; ++f)
      for (int64_t r = 0; r < o.realizations; ++r) {
        const NoiseRow row = o.draw.noise(streams::kConvSpe)
                                 .at({.head = i, .feature = f, .realisation = r});
        for (int64_t c = 0; c < n; ++c) {
          double code = 0;
          for (int64_t j = 0; j < kernel.size(2); ++j) {
            const int64_t at = start + c + j;
            code += a[i * d + f][0][j] *
                    (o.noise == "sign" ? row.sign(at) : row.normal(at));
          }
          for (int64_t s = 0; s < b; ++s)
            to[s][i][c][r] += scale * code * from[s][i][c][f];
        }
      }
  return out;
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.sizes(), want.sizes());
  if (want.numel() == 0) return;
  const double error = (got.to(at::kDouble) - want).abs().max().item<double>();
  EXPECT_LE(error, tolerance * (want.abs().max().item<double>() + 1e-30));
}

void expect_definition(const Inputs& in, const ConvSpeOptions& o) {
  const Tensor q = on_a_line(in.q, in.query_kernel, o.query_start, o);
  const Tensor k = on_a_line(in.k, in.key_kernel, o.key_start, o);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const auto [q1, k1] = run(in.to(type), o);
    expect_close(q1, q, type == at::kFloat ? 1e-5 : 1e-12);
    expect_close(k1, k, type == at::kFloat ? 1e-5 : 1e-12);
  }
}

TEST(ConvSpeOperator, EqualsItsDefinition) {
  for (const char* method : {"auto", "direct", "fourier"})
    for (const char* noise : {"gaussian", "sign"})
      for (const int64_t taps : {1, 4, 37}) {
        ConvSpeOptions o;
        o.realizations = 11, o.method = method, o.noise = noise;
        o.draw = {5, 17, 1};
        expect_definition(inputs(2, 3, 13, 13, 4, {taps}), o);
        o.query_start = 100, o.key_start = 90;  // apart: noise is not shared
        expect_definition(inputs(1, 2, 5, 9, 3, {taps}), o);
      }
}

TEST(ConvSpeOperator, TakesFewOrNoRows) {
  ConvSpeOptions o;
  o.realizations = 5;
  for (const int64_t n : {0, 1}) expect_definition(inputs(2, 2, n, n, 3, {6}), o);
  EXPECT_EQ(std::get<0>(run(inputs(0, 2, 3, 3, 4, {6}), o)).sizes(),
            at::IntArrayRef({0, 2, 3, 5}));
}

TEST(ConvSpeOperator, IsCutIntoStretchesWithoutATrace) {
  ConvSpeOptions o;
  o.realizations = 3;
  expect_definition(inputs(1, 1, 1100, 1100, 2, {40}), o);
}

TEST(ConvSpeOperator, CostsTheSameAndHoldsAtFarPositions) {
  ConvSpeOptions o;
  o.realizations = 4, o.query_start = o.key_start = 10'000'000;
  expect_definition(inputs(1, 1, 6, 6, 2, {9}), o);
}

TEST(ConvSpeOperator, GivesARowTheSameBitsInAnySplitWhenDirect) {
  const Inputs in = inputs(1, 2, 60, 60, 5, {33}).to(at::kFloat);
  ConvSpeOptions o;
  o.realizations = 20, o.method = "direct";
  const auto [q, k] = run(in, o);
  for (const auto& [begin, end] : {std::pair{0, 1}, {31, 32}, {7, 60}}) {
    o.query_start = o.key_start = begin;
    const auto [q1, k1] = run({in.q.slice(2, begin, end), in.k.slice(2, begin, end),
                               in.query_kernel, in.key_kernel},
                              o);
    EXPECT_TRUE(at::equal(q1, q.slice(2, begin, end)));
    EXPECT_TRUE(at::equal(k1, k.slice(2, begin, end)));
  }
}

/// Gradients of <q', g> + <k', h>.
std::vector<Tensor> gradients(const Inputs& in, const ConvSpeOptions& o,
                              const Tensor& g, const Tensor& h) {
  std::vector<Tensor> leaves = {in.q, in.k, in.query_kernel, in.key_kernel};
  for (Tensor& x : leaves) x = x.detach().clone().set_requires_grad(true);
  const auto [q, k] = conv_spe(leaves[0], leaves[1], leaves[2], leaves[3], o);
  ((q * g).sum() + (k * h).sum()).backward();
  std::vector<Tensor> result;
  for (const Tensor& x : leaves) result.push_back(x.grad());
  return result;
}

void expect_differences(const Inputs& in, const ConvSpeOptions& o) {
  const Tensor g =
      normal({in.q.size(0), in.q.size(1), in.q.size(2), o.realizations}, 8);
  const Tensor h =
      normal({in.k.size(0), in.k.size(1), in.k.size(2), o.realizations}, 9);
  const auto loss = [&](const std::vector<Tensor>& x) {
    const auto [q, k] = conv_spe(x[0], x[1], x[2], x[3], o);
    return ((q * g).sum() + (k * h).sum()).item<double>();
  };
  const std::vector<Tensor> at = {in.q, in.k, in.query_kernel, in.key_kernel};
  const std::vector<Tensor> slopes = gradients(in, o, g, h);
  for (size_t i = 0; i < 4; ++i) {
    const Tensor u = normal(at[i].sizes(), 20 + i);
    auto more = at, less = at;
    const double step = 1e-4;  // the loss is linear in each
    more[i] = at[i] + step * u, less[i] = at[i] - step * u;
    const double want = (loss(more) - loss(less)) / (2 * step);
    const double size = (slopes[i].norm() * u.norm()).item<double>();
    EXPECT_NEAR((slopes[i] * u).sum().item<double>(), want, 1e-8 * size + 1e-9) << i;
  }
}

TEST(ConvSpeOperator, HasGradientsThatEqualFiniteDifferences) {
  ConvSpeOptions o;
  o.realizations = 7;
  for (const char* method : {"direct", "fourier"}) {
    o.method = method;
    expect_differences(inputs(2, 2, 45, 45, 3, {35}), o);
    o.query_start = 3;
    expect_differences(inputs(2, 2, 4, 9, 3, {5}), o);
    o.query_start = 0;
  }
  o.method = "auto";
  expect_differences(inputs(1, 1, 1100, 1100, 2, {3}), o);
  o.grid = {5, 4};
  expect_differences(inputs(2, 2, 20, 20, 3, {2, 3}), o);
  o.grid = {2, 3, 4};
  expect_differences(inputs(1, 2, 24, 24, 3, {2, 1, 3}), o);
}

TEST(ConvSpeOperator, GivesTheSameBitsOnAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const Inputs in = inputs(2, 3, 700, 700, 5, {50}).to(at::kFloat);
  ConvSpeOptions o;
  o.realizations = 20;
  const Tensor g = normal({2, 3, 700, 20}, 8).to(at::kFloat);
  std::vector<Tensor> first;
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    auto all = gradients(in, o, g, g);
    const auto [q, k] = run(in, o);
    all.push_back(q), all.push_back(k);
    if (first.empty()) first = all;
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(at::equal(all[i], first[i])) << i;
  }
  at::set_num_threads(threads);
}

TEST(ConvSpeOperator, HonoursStrides) {
  const Inputs in = inputs(2, 3, 13, 13, 4, {5});
  const auto spread = [](const Tensor& x) {
    return x.permute({3, 0, 2, 1}).contiguous().permute({1, 3, 2, 0});
  };
  ConvSpeOptions o;
  o.realizations = 6;
  const auto [q, k] = run(in, o);
  const auto [q1, k1] =
      run({spread(in.q), spread(in.k), in.query_kernel, in.key_kernel}, o);
  EXPECT_TRUE(at::equal(q, q1));
  EXPECT_TRUE(at::equal(k, k1));
  const Tensor g = normal(q.sizes(), 5);
  const auto a = gradients(in, o, g, g);
  const auto b = gradients(in, o, spread(g), spread(g));
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(a[i], b[i]));
}

TEST(ConvSpeOperator, TakesNoiseThatWasDrawnBefore) {
  const Inputs in = inputs(1, 2, 9, 9, 3, {6});
  ConvSpeOptions o;
  o.realizations = 70, o.query_start = o.key_start = 50, o.draw.seed = 3;
  const auto [q, k] = run(in, o);
  o.z = at::empty({2, 3, 20, 70}, at::kDouble);
  o.z_start = 47;
  draw_conv_noise(o.z, 47, "gaussian", o.draw);
  const auto [q1, k1] = run(in, o);
  EXPECT_TRUE(at::equal(q, q1));
  EXPECT_TRUE(at::equal(k, k1));
}

void expect_refusal(const std::string& words, const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "accepted; expected: " << words;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_NE(text.find("conv_spe: expected"), std::string::npos) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
}

TEST(ConvSpeOperator, SaysWhatIsWrong) {
  const Inputs in = inputs(1, 2, 9, 9, 3, {6});
  const auto with = [&](auto change) {
    return [&in, change] {
      ConvSpeOptions o;
      change(o);
      run(in, o);
    };
  };
  expect_refusal("gaussian or sign", with([](auto& o) { o.noise = "pink"; }));
  expect_refusal("auto, direct", with([](auto& o) { o.method = "fast"; }));
  expect_refusal("realizations", with([](auto& o) { o.realizations = 0; }));
  expect_refusal("a row for each cell", with([](auto& o) { o.grid = {8}; }));
  expect_refusal("a grid of 1 axes", with([](auto& o) { o.grid = {3, 3}; }));
  expect_refusal("to hold the samples", with([](auto& o) {
                   o.z = at::zeros({2, 3, 13, 64}, at::kDouble);
                 }));
  expect_refusal("within 2^47", with([](auto& o) { o.key_start = int64_t{1} << 47; }));
  const ConvSpeOptions o;
  expect_refusal("both kernels of one size", [&] {
    run({in.q, in.k, in.query_kernel, in.key_kernel.slice(2, 1)}, o);
  });
  expect_refusal("got Float", [&] {
    run({in.q, in.k.to(at::kFloat), in.query_kernel, in.key_kernel}, o);
  });
}

}  // namespace
}  // namespace lagwise::ops
