// Precision::bf16 changes what is multiplied and what is kept, by rounding alone: each
// test computes the same from factors rounded beforehand.

#include "lagwise/ops/precision.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "lagwise/ops/dense.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/matrix_product.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

Tensor random(at::IntArrayRef sizes) {
  return at::randn(sizes, at::kFloat).set_requires_grad(true);
}

/// x rounded to bf16, in f64.
Tensor rounded(const Tensor& x) { return x.detach().to(at::kBFloat16).to(at::kDouble); }

double largest(const Tensor& x) { return x.abs().max().item<double>(); }

void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE(largest(got.detach().to(at::kDouble) - want.detach().to(at::kDouble)),
            tolerance * std::max(1.0, largest(want)));
}

/// c = a b or c += a b of a [m, k], b [k, n], either of them stored by columns.
void expect_product(int64_t m, int64_t k, int64_t n, bool a_turned, bool b_turned,
                    bool add, ShortProduct way) {
  const auto factor = [](int64_t rows, int64_t cols, bool turned) {
    const Tensor x = turned ? at::randn({cols, rows}).t() : at::randn({rows, cols});
    return x.to(at::kBFloat16);
  };
  const Tensor a = factor(m, k, a_turned), b = factor(k, n, b_turned);
  const Tensor c = at::randn({m, n});
  const Tensor want = at::matmul(a.to(at::kDouble), b.to(at::kDouble)) +
                      (add ? c.to(at::kDouble) : at::zeros({m, n}, at::kDouble));
  const auto view = [](const Tensor& x) {
    return MatView<const c10::BFloat16>{x.data_ptr<c10::BFloat16>(), x.size(0),
                                        x.size(1), x.stride(0), x.stride(1)};
  };
  multiply(view(a), view(b), add, matrix_view<float>(c), way);
  expect_close(c, want, 1e-5);
}

void expect_products(ShortProduct way) {
  at::manual_seed(1);
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {3, 5, 7}, {64, 64, 64}, {1, 70, 33}, {65, 17, 130}})
    for (const bool a_turned : {false, true})
      for (const bool b_turned : {false, true})
        for (const bool add : {false, true})
          expect_product(m, k, n, a_turned, b_turned, add, way);
}

TEST(ShortProducts, AreThoseOfRoundedFactors) {
  expect_products(ShortProduct::widening);
}

TEST(ShortProducts, AreTheSameByInstructions) {
  // oneDNN imitates them on any AVX-512; where there are tiles it is not asked.
  if (!__builtin_cpu_supports("avx512bw") ||
      !matrix_product_library().starts_with("oneDNN") ||
      best_short_product() == ShortProduct::tiles)
    GTEST_SKIP() << "needs oneDNN and AVX-512 without AMX";
  expect_products(ShortProduct::instructions);
}

TEST(ShortProducts, AreTheSameByTiles) {
  if (best_short_product() != ShortProduct::tiles) GTEST_SKIP() << "needs AMX";
  expect_products(ShortProduct::tiles);
  // More than one pass over the depth, and blocks of 32 rows and columns with a rest.
  expect_product(33, 1100, 70, false, true, true, ShortProduct::tiles);
  expect_product(70, 1030, 33, true, false, false, ShortProduct::tiles);
}

TEST(ShortProducts, KeepRowsApartByTiles) {
  if (best_short_product() != ShortProduct::tiles) GTEST_SKIP() << "needs AMX";
  at::manual_seed(5);
  const Tensor a = at::randn({40, 45}).to(at::kBFloat16);
  const Tensor b = at::randn({45, 20}).to(at::kBFloat16);
  const auto product = [&](const Tensor& x) {
    const Tensor c = at::zeros({x.size(0), 20});
    const auto view = [](const Tensor& t) {
      return matrix_view<const c10::BFloat16>(t);
    };
    multiply(view(x), view(b), false, matrix_view<float>(c), ShortProduct::tiles);
    return c;
  };
  const Tensor want = product(a);
  const Tensor hurt = a.clone();
  hurt[7].fill_(std::numeric_limits<double>::quiet_NaN());
  const Tensor got = product(hurt);
  EXPECT_TRUE(got.slice(0, 0, 7).equal(want.slice(0, 0, 7)));
  EXPECT_TRUE(got.slice(0, 8).equal(want.slice(0, 8)));
  EXPECT_TRUE(got[7].isnan().all().item<bool>());
  EXPECT_TRUE(product(a.slice(0, 3, 20).contiguous()).equal(want.slice(0, 3, 20)));
}

TEST(ShortProducts, OfNothingAreNothing) {
  for (const auto way : {ShortProduct::widening, best_short_product()}) {
    float c[2] = {3, 4};
    multiply(MatView<const c10::BFloat16>{nullptr, 1, 0, 0, 1},
             MatView<const c10::BFloat16>{nullptr, 0, 2, 2, 1}, true, {c, 1, 2, 2, 1},
             way);
    EXPECT_EQ(c[0], 3);
    multiply(MatView<const c10::BFloat16>{nullptr, 1, 0, 0, 1},
             MatView<const c10::BFloat16>{nullptr, 0, 2, 2, 1}, false, {c, 1, 2, 2, 1},
             way);
    EXPECT_EQ(c[1], 0);
  }
}

TEST(Bf16, DenseMultipliesRoundedFactors) {
  at::manual_seed(2);
  const WithPrecision here(Precision::bf16);
  const Tensor x = random({2, 70, 48}), w = random({33, 48}), b = random({33});
  const Tensor start = random({2, 70, 33}), dy = at::randn({2, 70, 33});
  const Tensor y = dense(x, w, b, start);
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  expect_close(y,
               at::linear(rounded(x), rounded(w), b.detach().to(at::kDouble)) +
                   start.detach().to(at::kDouble),
               1e-5);
  const auto got = torch::autograd::grad({y}, {x, w, b, start}, {dy});
  const Tensor up = rounded(dy).view({-1, 33});
  expect_close(got[0].view({-1, 48}), up.mm(rounded(w)), 1e-5);
  expect_close(got[1], up.t().mm(rounded(x).view({-1, 48})), 1e-5);
  expect_close(got[2], up.sum(0), 1e-5);
  EXPECT_TRUE(got[3].equal(dy));
}

TEST(Bf16, WithoutAGraphGivesTheSameBits) {
  at::manual_seed(3);
  const WithPrecision here(Precision::bf16);
  const Tensor x = random({5, 32}), w = random({24, 32}), b = random({24});
  const Tensor recorded = dense(x, w, b);
  EXPECT_TRUE(recorded.equal(dense(x.detach(), w.detach(), b.detach())));
  EXPECT_FALSE(recorded.equal(at::linear(x, w, b)));
}

TEST(Bf16, LeavesF64AloneAndEndsWithItsScope) {
  at::manual_seed(4);
  const Tensor x = at::randn({5, 8}, at::kDouble), w = at::randn({3, 8}, at::kDouble);
  const Tensor want = dense(x, w);
  {
    const WithPrecision here(Precision::bf16);
    EXPECT_TRUE(dense(x, w).equal(want));
    const WithPrecision inner(Precision::full);
    EXPECT_EQ(precision(), Precision::full);
  }
  EXPECT_EQ(precision(), Precision::full);
}

/// Everything a block's dense layers compute, forward and backward.
std::vector<Tensor> block_passes(int threads) {
  at::set_num_threads(threads);
  at::manual_seed(5);
  const Tensor x = random({3, 700, 32}), gain = random({32}), v = random({3, 700, 32});
  const DenseWeights a{random({32, 32}), random({32})}, b{random({40, 32}), {}};
  const DenseWeights in{random({128, 32}), random({128})},
      out{random({32, 128}), random({32})};
  const InputNorm norm{gain, 1e-5};
  const auto each = dense_each(x, {a, b}, norm).y;
  const Tensor y = feed_forward(x, in, out, x, norm);
  const Tensor sum = (each[0] * v).sum() + each[1].sum() + (y * v).sum();
  std::vector<Tensor> all = torch::autograd::grad(
      {sum},
      {x, gain, a.weight, a.bias, b.weight, in.weight, in.bias, out.weight, out.bias});
  all.insert(all.end(), {each[0].detach(), each[1].detach(), y.detach()});
  return all;
}

TEST(Bf16, BlocksStayNearF32AndDoNotDependOnThreads) {
  const int before = at::get_num_threads();
  const auto full = block_passes(1);
  const WithPrecision here(Precision::bf16);
  const auto one = block_passes(1), two = block_passes(2), four = block_passes(4);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].scalar_type(), at::kFloat);
    EXPECT_TRUE(one[i].equal(two[i])) << i;
    EXPECT_TRUE(one[i].equal(four[i])) << i;
    EXPECT_FALSE(one[i].equal(full[i])) << i;
    const double error = (one[i] - full[i]).norm().item<double>();
    EXPECT_LE(error, 0.01 * full[i].norm().item<double>()) << i;
  }
}

/// The sum of what attention gives for q, k, v, and its gradients.
template <class Attend>
std::vector<Tensor> attended(const Tensor& q, const Tensor& k, const Tensor& v,
                             const Attend& attend) {
  const Tensor out = attend(q, k, v);
  auto all = torch::autograd::grad({(out * out).sum()}, {q, k, v});
  all.push_back(out.detach());
  return all;
}

template <class Attend>
void expect_rounds_its_rows(const Attend& attend) {
  at::manual_seed(6);
  const Tensor q = random({2, 2, 40, 8}), k = random({2, 2, 40, 8}),
               v = random({2, 2, 40, 8});
  const auto first = [](const Tensor& x) {
    return x.detach().to(at::kBFloat16).to(at::kFloat).set_requires_grad(true);
  };
  const auto want = attended(first(q), first(k), first(v), attend);
  const WithPrecision here(Precision::bf16);
  const auto got = attended(q, k, v, attend);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << i;
}

TEST(Bf16, AttentionIsThatOfRoundedRowsBitForBit) {
  expect_rounds_its_rows([](const Tensor& q, const Tensor& k, const Tensor& v) {
    LinearOptions options;
    options.causal = true, options.feature_map = "elu1";
    return linear_attention(q, k, v, options);
  });
  expect_rounds_its_rows([](const Tensor& q, const Tensor& k, const Tensor& v) {
    ExactOptions options;
    options.causal = true, options.scale = 0.3;
    return exact_attention(q, k, v, options);
  });
}

}  // namespace
}  // namespace lagwise::ops
