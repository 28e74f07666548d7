#include "lagwise/ops/dense.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/ops/precision.h"
#include "lagwise/ops/recompute.h"
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

/// y = act() and its gradients by the leaves, on 1, 2 and 4 threads.
template <class Act>
void expect_same_bits(const std::vector<Tensor>& leaves, const Tensor& up,
                      const Act& act) {
  std::vector<std::vector<Tensor>> results;
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 4}) {
    omp_set_num_threads(threads);
    const Tensor y = act();
    auto gradients = torch::autograd::grad({y}, leaves, {up});
    gradients.push_back(y);
    results.push_back(gradients);
  }
  omp_set_num_threads(before);
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(results[0][i].equal(results[1][i])) << i;
    EXPECT_TRUE(results[0][i].equal(results[2][i])) << i;
  }
}

TEST(Dense, GivesTheSameBitsOnAnyNumberOfThreads) {
  const OneBlasThread one;
  at::manual_seed(4);
  const Tensor x = random({700, 40}, at::kFloat), w = random({50, 40}, at::kFloat),
               b = random({50}, at::kFloat);
  expect_same_bits({x, w, b}, at::randn({700, 50}), [&] { return dense(x, w, b); });
}

TEST(Dense, DoesNotMindTheThreadsOfBlas) {
  const int before = blas_threads();
  set_blas_threads(2);
  at::manual_seed(5);
  expect_same(70, 5, 3, true, at::kDouble, 1e-12);
  expect_same(70, 5, 3, true, at::kFloat, 1e-5);
  set_blas_threads(before);
}

/// Gradients of all leaves beside those of `want`, which computes the same in torch.
void expect_equal(const Tensor& got, const Tensor& want,
                  const std::vector<Tensor>& leaves, double tolerance) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_TRUE(at::allclose(got, want, tolerance, tolerance));
  const Tensor up = at::randn(want.sizes(), want.options());
  const auto ours = torch::autograd::grad({got}, leaves, {up});
  const auto theirs = torch::autograd::grad({want}, leaves, {up});
  for (size_t i = 0; i < leaves.size(); ++i)
    EXPECT_TRUE(at::allclose(ours[i], theirs[i], tolerance, tolerance)) << i;
}

TEST(Dense, IsAddedToAStart) {
  at::manual_seed(6);
  for (const bool biased : {true, false})
    for (const int64_t rows : {1, 130}) {
      const Tensor x = random({2, rows, 5}), w = random({3, 5}), b = random({3});
      const Tensor start = random({rows, 2, 3}).transpose(0, 1);
      const Tensor bias = biased ? b : Tensor();
      std::vector<Tensor> leaves = {x, w, start};
      if (biased) leaves.push_back(b);
      const Tensor want = (biased ? at::linear(x, w, b) : at::linear(x, w)) + start;
      expect_equal(dense(x, w, bias, start), want, leaves, 1e-10);
    }
}

TEST(Dense, ServesSeveralLayersOfOneInput) {
  at::manual_seed(7);
  const Tensor x = random({3, 70, 6}).transpose(0, 1), w0 = random({4, 6}),
               b0 = random({4}), w1 = random({9, 6});
  const auto both = [&](const Tensor& u, const Tensor& v) {
    return at::cat({u.tanh(), v}, -1);
  };
  const auto got = dense_each(x, {{w0, b0}, {w1, {}}}).y;
  expect_equal(both(got[0], got[1]), both(at::linear(x, w0, b0), at::linear(x, w1)),
               {x, w0, b0, w1}, 1e-10);
  // What nobody uses has no gradient.
  const auto again = dense_each(x, {{w0, b0}, {w1, {}}}).y;
  expect_equal(again[1], at::linear(x, w1), {x, w1}, 1e-10);
  EXPECT_TRUE(dense_each(x.detach(), {{w0.detach(), b0.detach()}})
                  .y[0]
                  .equal(dense(x, w0, b0)));
}

TEST(Dense, LetsItsInputPassBy) {
  at::manual_seed(11);
  const double eps = 1e-5;
  const Tensor x = random({2, 70, 6}), gain = random({6}), w = random({4, 6});
  const auto around = [](const Tensor& y, const Tensor& past) {
    return at::cat({y.tanh(), past.square()}, -1);
  };
  const auto plain = dense_each(x, {{w, {}}});
  expect_equal(around(plain.y[0], plain.x), around(at::linear(x, w), x), {x, w}, 1e-10);
  const Tensor normed = x * at::rsqrt(x.square().mean(-1, true) + eps) * gain;
  const auto got = dense_each(x, {{w, {}}}, {gain, eps});
  expect_equal(around(got.y[0], got.x), around(at::linear(normed, w), x), {x, gain, w},
               1e-8);
  // Past the layers alone, or through them alone.
  const auto past = dense_each(x, {{w, {}}}, {gain, eps});
  expect_equal(past.x.square(), x.square(), {x}, 1e-12);
  EXPECT_TRUE(dense_each(x.detach(), {{w.detach(), {}}}).x.equal(x));
}

TEST(FeedForward, IsTwoLayersWithGeluBetween) {
  at::manual_seed(8);
  for (const int64_t rows : {1, 63, 65, 700})
    for (const bool started : {true, false}) {
      const Tensor x = random({rows, 2, 5}).transpose(0, 1), w0 = random({11, 5}),
                   b0 = random({11}), w1 = random({5, 11}), b1 = random({5});
      const Tensor start = started ? random({2, rows, 5}) : Tensor();
      Tensor want = at::linear(at::gelu(at::linear(x, w0, b0)), w1, b1);
      std::vector<Tensor> leaves = {x, w0, b0, w1, b1};
      if (started) want = want + start, leaves.push_back(start);
      expect_equal(feed_forward(x, {w0, b0}, {w1, b1}, start), want, leaves, 1e-9);
      const at::NoGradGuard no_graph;
      EXPECT_TRUE(
          at::allclose(feed_forward(x, {w0, b0}, {w1, b1}, start), want, 1e-9, 1e-9));
    }
  const Tensor x = random({7, 5}), w0 = random({11, 5}), b0 = random({11}),
               w1 = random({5, 11}), b1 = random({5});
  expect_equal(feed_forward(x, {w0, b0}, {w1, b1}, x),
               x + at::linear(at::gelu(at::linear(x, w0, b0)), w1, b1),
               {x, w0, b0, w1, b1}, 1e-9);
}

TEST(Dense, NormsItsInputIfAsked) {
  at::manual_seed(10);
  const double eps = 1e-5;
  for (const int64_t rows : {1, 70, 1400}) {
    const Tensor x = random({2, rows, 6}), gain = random({6}), w0 = random({4, 6}),
                 b0 = random({4}), w1 = random({9, 6});
    const auto normed = [&] {
      return x * at::rsqrt(x.square().mean(-1, true) + eps) * gain;
    };
    const auto got = dense_each(x, {{w0, b0}, {w1, {}}}, {gain, eps}).y;
    expect_equal(
        at::cat({got[0].tanh(), got[1]}, -1),
        at::cat({at::linear(normed(), w0, b0).tanh(), at::linear(normed(), w1)}, -1),
        {x, gain, w0, b0, w1}, 1e-8);
    const Tensor v0 = random({11, 6}), c0 = random({11}), v1 = random({6, 11}),
                 c1 = random({6});
    expect_equal(feed_forward(x, {v0, c0}, {v1, c1}, x, {gain, eps}),
                 x + at::linear(at::gelu(at::linear(normed(), v0, c0)), v1, c1),
                 {x, gain, v0, c0, v1, c1}, 1e-8);
    const at::NoGradGuard no_graph;
    EXPECT_TRUE(at::allclose(dense_each(x, {{w0, b0}}, {gain, eps}).y[0], got[0]));
    EXPECT_TRUE(
        at::allclose(feed_forward(x, {v0, c0}, {v1, c1}, x, {gain, eps}),
                     x + at::linear(at::gelu(at::linear(normed(), v0, c0)), v1, c1)));
  }
  EXPECT_THROW(
      dense_each(at::zeros({2, 3}), {{at::zeros({4, 3}), {}}}, {at::zeros({4}), eps}),
      c10::Error);
}

TEST(FeedForward, ComputesAnewWhatItDoesNotKeep) {
  at::manual_seed(12);
  for (const int64_t rows : {1, 300, 1300})
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const Tensor x = random({rows, 6}, type), gain = random({6}, type),
                   w0 = random({24, 6}, type), b0 = random({24}, type),
                   w1 = random({6, 24}, type), b1 = random({6}, type);
      const auto passes = [&](bool anew, Precision precision) {
        const WithRecompute here(anew);
        const WithPrecision rounding(precision);
        const Tensor y = feed_forward(x, {w0, b0}, {w1, b1}, x, {gain, 1e-5});
        auto all = torch::autograd::grad({y.square().sum()}, {x, gain, w0, b0, w1, b1});
        all.push_back(y.detach());
        return all;
      };
      for (const Precision precision : {Precision::full, Precision::bf16}) {
        // The passes cut rows into other blocks, and libraries may round the last rows
        // of a block in another way (oneDNN does with AVX2); in bf16 a number may then
        // be rounded to its neighbour.
        const double apart = precision == Precision::bf16 ? 1e-2
                             : type == at::kDouble        ? 1e-12
                                                          : 1e-5;
        const auto kept = passes(false, precision), anew = passes(true, precision);
        for (size_t i = 0; i < kept.size(); ++i)
          EXPECT_LE((kept[i] - anew[i]).abs().max().item<double>(),
                    apart * kept[i].abs().max().item<double>())
              << i << " of " << rows << " rows";
      }
    }
  EXPECT_FALSE(recomputes());
}

TEST(FeedForward, GivesTheSameBitsOnAnyNumberOfThreads) {
  at::manual_seed(9);
  const Tensor x = random({1300, 24}, at::kFloat), w0 = random({96, 24}, at::kFloat),
               b0 = random({96}, at::kFloat), w1 = random({24, 96}, at::kFloat),
               b1 = random({24}, at::kFloat);
  expect_same_bits({x, w0, b0, w1, b1}, at::randn({1300, 24}), [&] {
    return feed_forward(x, {w0, b0}, {w1, b1}, x);
  });
}

TEST(FeedForward, TakesNoRowsAndRefusesWhatDoesNotFit) {
  const Tensor w0 = at::zeros({4, 3}), b0 = at::zeros({4}), w1 = at::zeros({3, 4}),
               b1 = at::zeros({3});
  EXPECT_EQ(feed_forward(at::zeros({0, 3}), {w0, b0}, {w1, b1}).sizes(),
            (std::vector<int64_t>{0, 3}));
  EXPECT_THROW(feed_forward(at::zeros({2, 3}), {w0, b0}, {w0, b0}), c10::Error);
  EXPECT_THROW(feed_forward(at::zeros({2, 3}), {w0, {}}, {w1, b1}), c10::Error);
  EXPECT_THROW(dense(at::zeros({2, 3}), w0, b0, at::zeros({2, 3})), c10::Error);
}

TEST(FeedForward, RefusesASecondDerivative) {
  const Tensor x = random({2, 3}), w0 = random({4, 3}), b0 = random({4}),
               w1 = random({3, 4}), b1 = random({3});
  const auto first = torch::autograd::grad({feed_forward(x, {w0, b0}, {w1, b1}).sum()},
                                           {x}, {}, true, true);
  EXPECT_THROW(torch::autograd::grad({first[0].sum()}, {x}), c10::Error);
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
