#include "lagwise/ops/rotate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

namespace lagwise::ops {
namespace {

using at::Tensor;

Tensor normal(at::IntArrayRef sizes, uint64_t seed = 1) {
  at::manual_seed(seed);
  return at::randn(sizes, at::kDouble);
}

/// The definition: planes gathered, turned and put back.
Tensor by_definition(const Tensor& x, const Tensor& table, const std::string& layout,
                     bool opposite) {
  const int64_t planes = table.size(3) / 2;
  const Tensor j = at::arange(planes, at::kLong);
  const Tensor a = layout == "half" ? j : 2 * j;
  const Tensor b = layout == "half" ? j + planes : 2 * j + 1;
  const Tensor c = table.narrow(3, 0, planes);
  const Tensor s = table.narrow(3, planes, planes) * (opposite ? -1 : 1);
  const Tensor x_a = x.index_select(3, a), x_b = x.index_select(3, b);
  Tensor y = x.clone();
  y = y.index_copy(3, a, c * x_a - s * x_b);
  return y.index_copy(3, b, c * x_b + s * x_a);
}

struct Case {
  int64_t b, h, n, d, planes;
  bool per_row, per_head;
};

const Case kCases[] = {{1, 1, 0, 4, 2, false, false},  {1, 1, 1, 2, 1, false, false},
                       {2, 3, 5, 7, 3, false, true},   {2, 3, 130, 8, 2, true, false},
                       {3, 2, 67, 64, 32, true, true}, {2, 2, 300, 5, 0, false, false}};

Tensor table_for(const Case& c) {
  return normal({c.per_row ? c.b : 1, c.per_head ? c.h : 1, c.n, 2 * c.planes}, 2);
}

TEST(RotateOp, MatchesTheDefinitionWithItsGradients) {
  for (const Case& c : kCases) {
    for (const char* layout : {"interleaved", "half"}) {
      for (const bool opposite : {false, true}) {
        const Tensor g = normal({c.b, c.h, c.n, c.d}, 3);
        Tensor x = normal({c.b, c.h, c.n, c.d}).requires_grad_();
        Tensor table = table_for(c).requires_grad_();
        const Tensor y = rotate(x, table, layout, opposite);
        (y * g).sum().backward();
        Tensor x0 = x.detach().clone().requires_grad_();
        Tensor table0 = table.detach().clone().requires_grad_();
        const Tensor y0 = by_definition(x0, table0, layout, opposite);
        (y0 * g).sum().backward();
        EXPECT_TRUE(at::allclose(y, y0, 1e-13, 1e-13));
        EXPECT_TRUE(at::allclose(x.grad(), x0.grad(), 1e-13, 1e-13));
        EXPECT_TRUE(c.planes == 0 ||
                    at::allclose(table.grad(), table0.grad(), 1e-12, 1e-12));
        const Tensor f32 = rotate(x.detach().to(at::kFloat),
                                  table.detach().to(at::kFloat), layout, opposite);
        EXPECT_TRUE(at::allclose(f32.to(at::kDouble), y0, 1e-5, 1e-5));
      }
    }
  }
}

TEST(RotateOp, TakesAnyStrides) {
  const Tensor x = normal({2, 30, 3, 8}).transpose(1, 2);  // [B, N, H, D] in memory
  const Tensor spread = normal({2, 3, 30, 16}).slice(3, 0, 16, 2);
  const Tensor table = normal({30, 1, 1, 8}).permute({1, 2, 0, 3});
  for (const Tensor& input : {x, spread})
    EXPECT_TRUE(at::equal(rotate(input, table, "half"),
                          rotate(input.contiguous(), table.contiguous(), "half")));
}

TEST(RotateOp, GivesTheSameBitsForAnyNumberOfThreads) {
  Tensor x = normal({2, 3, 1000, 64}).to(at::kFloat).requires_grad_();
  Tensor frequency = normal({1, 32}, 5).abs_().requires_grad_();
  const Tensor at_rows = at::arange(1000, at::kDouble).view({1, 1000, 1});
  const auto run = [&](int threads) {
    omp_set_num_threads(threads);
    x.mutable_grad() = Tensor();
    frequency.mutable_grad() = Tensor();
    const Tensor table = rotation_table(at_rows, frequency, 1, at::kFloat);
    const Tensor y = rotate(x, table, "interleaved");
    (y * y * y).sum().backward();
    return std::vector<Tensor>{y.detach(), x.grad(), frequency.grad()};
  };
  at::get_num_threads();
  const auto one = run(1);
  for (const int threads : {2, 4}) {
    const auto more = run(threads);
    EXPECT_TRUE(at::equal(more[0], one[0]));
    EXPECT_TRUE(at::equal(more[1], one[1]));
    // The sum over rows is ATen's own.
    EXPECT_TRUE(at::allclose(more[2], one[2], 1e-6));
  }
  omp_set_num_threads(1);
}

TEST(RotationTable, HoldsCosinesAndSinesForEveryHeadAndRow) {
  const Tensor p = at::arange(12, at::kDouble).view({2, 3, 2}) * 100000;
  const Tensor f = normal({3, 4}, 7).abs();
  const Tensor table = rotation_table(p, f, 1.25, at::kDouble);
  ASSERT_EQ(table.sizes(), (at::IntArrayRef{2, 3, 3, 8}));
  const Tensor axis = at::tensor({0, 0, 1, 1}, at::kLong);
  const Tensor angle =
      p.index_select(2, axis).unsqueeze(1) * f.unsqueeze(0).unsqueeze(2);
  const Tensor want = 1.25 * at::cat({angle.cos(), angle.sin()}, 3);
  EXPECT_TRUE(at::allclose(table, want, 0, 1e-9));
}

TEST(RotationTable, HandsAGradientToFrequencies) {
  const Tensor p = at::arange(40, at::kDouble).view({2, 10, 2});
  const Tensor x = normal({2, 3, 10, 9}, 8), g = normal({2, 3, 10, 9}, 9);
  const Tensor direction = normal({3, 4}, 10);
  Tensor f = normal({3, 4}, 7).abs().requires_grad_();
  const auto loss = [&](const Tensor& frequency) {
    const Tensor table = rotation_table(p, frequency, 1.5, at::kDouble);
    return (rotate(x, table, "half") * g).sum();
  };
  loss(f).backward();
  const double h = 1e-6;
  const double slope =
      ((loss(f + h * direction) - loss(f - h * direction)) / (2 * h)).item<double>();
  EXPECT_NEAR((f.grad() * direction).sum().item<double>(), slope,
              1e-6 * std::abs(slope) + 1e-6);
}

TEST(RotateOp, NamesWhatIsWrong) {
  const Tensor x = normal({1, 2, 3, 4}), table = normal({1, 1, 3, 4});
  const auto fails_with = [](auto act, const std::string& text) {
    try {
      act();
      ADD_FAILURE() << "accepted what should say " << text;
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string(error.what_without_backtrace()).find(text),
                std::string::npos)
          << error.what_without_backtrace();
    }
  };
  fails_with([&] { rotate(x, table, "neox"); },
             "rotate: expected layout interleaved or half, got 'neox'");
  fails_with(
      [&] {
        rotate(x, normal({1, 1, 2, 4}), "half");
      },
      "rotate: expected table [B|1, H|1, N, 2P]");
  fails_with([&] { rotate(x, normal({1, 1, 3, 6}), "half"); }, "2P <= D");
  fails_with([&] { rotate(x[0], table, "half"); }, "expected x [B, H, N, D]");
  fails_with([&] { rotate(x.to(at::kFloat), table, "half"); },
             "expected table of the type");
  fails_with(
      [&] {
        rotation_table(normal({3, 1}), normal({1, 2}), 1, at::kFloat);
      },
      "expected positions [B|1, N, A]");
  fails_with(
      [&] {
        rotation_table(normal({1, 3, 2}), normal({1, 3}), 1, at::kFloat);
      },
      "a multiple of the number of axes");
}

}  // namespace
}  // namespace lagwise::ops
