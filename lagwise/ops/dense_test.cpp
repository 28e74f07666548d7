#include "lagwise/ops/dense.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

/// BLAS with one thread while it lives, as `dense` wants it.
struct OneBlasThread {
  const int before = blas_threads();
  OneBlasThread() { set_blas_threads(1); }
  ~OneBlasThread() { set_blas_threads(before); }
};

Tensor random(at::IntArrayRef sizes, at::ScalarType type = at::kDouble) {
  return at::randn(sizes, type).set_requires_grad(true);
}

TEST(Dense, EqualsTheSumsItStandsFor) {
  const OneBlasThread one;
  at::manual_seed(1);
  const Tensor x = random({2, 3, 5}), w = random({4, 5}), b = random({4});
  const Tensor y = dense(x, w, b);
  ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 3, 4}));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t n = 0; n < 3; ++n)
      for (int64_t o = 0; o < 4; ++o) {
        double want = b[o].item<double>();
        for (int64_t c = 0; c < 5; ++c)
          want += x[i][n][c].item<double>() * w[o][c].item<double>();
        EXPECT_NEAR(y[i][n][o].item<double>(), want, 1e-12);
      }
}

/// Values and gradients beside torch's own, past every size of piece.
void expect_same(int64_t rows, int64_t in, int64_t out, bool biased,
                 at::ScalarType type, double tolerance) {
  const Tensor x = random({rows, in}, type), w = random({out, in}, type),
               b = random({out}, type);
  const Tensor dy = at::randn({rows, out}, type);
  const auto leaves = biased ? std::vector<Tensor>{x, w, b} : std::vector<Tensor>{x, w};
  const Tensor bias = biased ? b : Tensor();
  const Tensor got = dense(x, w, bias);
  const Tensor want = biased ? at::linear(x, w, b) : at::linear(x, w);
  EXPECT_TRUE(at::allclose(got, want, tolerance, tolerance));
  const auto ours = torch::autograd::grad({got}, leaves, {dy});
  const auto theirs = torch::autograd::grad({want}, leaves, {dy});
  for (size_t i = 0; i < leaves.size(); ++i)
    EXPECT_TRUE(at::allclose(ours[i], theirs[i], tolerance, tolerance)) << i;
}

TEST(Dense, AgreesWithTorchOnAnyShape) {
  const OneBlasThread one;
  at::manual_seed(2);
  for (const int64_t rows : {1, 63, 64, 65, 513, 1031})
    for (const bool biased : {true, false}) {
      expect_same(rows, 7, 33, biased, at::kDouble, 1e-10);
      expect_same(rows, 48, 1, biased, at::kFloat, 1e-3);
    }
}

TEST(Dense, HonoursStrides) {
  const OneBlasThread one;
  at::manual_seed(3);
  const Tensor x = random({5, 70, 3}).transpose(0, 2), w = random({3, 5}).slice(0, 1);
  EXPECT_TRUE(at::allclose(dense(x, w), at::linear(x, w), 1e-12, 1e-12));
  const Tensor dy = at::randn({2, 70, 3}, at::kDouble).transpose(0, 2);
  const Tensor leaf = random({2, 5});
  const Tensor ours = torch::autograd::grad({dense(x, leaf)}, {leaf}, {dy})[0];
  const Tensor theirs = torch::autograd::grad({at::linear(x, leaf)}, {leaf}, {dy})[0];
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-10, 1e-10));
}

TEST(Dense, TakesNoRowsAtAll) {
  const OneBlasThread one;
  EXPECT_EQ(dense(at::zeros({0, 3}), at::zeros({2, 3})).sizes(),
            (std::vector<int64_t>{0, 2}));
}

TEST(Dense, GivesTheSameBitsOnAnyNumberOfThreads) {
  const OneBlasThread one;
  at::manual_seed(4);
  const Tensor x = random({700, 40}, at::kFloat), w = random({50, 40}, at::kFloat),
               b = random({50}, at::kFloat), dy = at::randn({700, 50});
  std::vector<std::vector<Tensor>> results;
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 4}) {
    omp_set_num_threads(threads);
    const Tensor y = dense(x, w, b);
    auto gradients = torch::autograd::grad({y}, {x, w, b}, {dy});
    gradients.push_back(y);
    results.push_back(gradients);
  }
  omp_set_num_threads(before);
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(results[0][i].equal(results[1][i])) << i;
    EXPECT_TRUE(results[0][i].equal(results[2][i])) << i;
  }
}

TEST(Dense, LeavesProductsToABlasWithThreadsOfItsOwn) {
  const int before = blas_threads();
  set_blas_threads(2);
  at::manual_seed(5);
  expect_same(70, 5, 3, true, at::kDouble, 1e-12);
  set_blas_threads(before);
}

TEST(Dense, SaysWhatIsWrong) {
  const auto message = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    try {
      dense(x, w, b);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  const Tensor x = at::zeros({4, 3}), w = at::zeros({2, 3});
  EXPECT_EQ(message(x, at::zeros({2, 5}), {}),
            "dense: expected x [.., I] with I = 5, got [4, 3]");
  EXPECT_EQ(message(x, w, at::zeros({3})),
            "dense: expected bias [O] with O = 2, got [3]");
  EXPECT_EQ(message(x, at::zeros({3}), {}), "dense: expected weight [O, I], got [3]");
}

}  // namespace
}  // namespace lagwise::ops
