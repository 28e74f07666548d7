#include "lagwise/ops/sine_spe.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace lagwise::ops {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

struct Shape {
  int64_t b = 2, h = 2, n = 37, m = 41, d = 5, sines = 3, width = 12;
  bool gated = true, dense = true;
};

struct Problem {
  Tensor q, k, q_at, k_at;
  SineWaves waves;
  SineMixing mixing;
};

Problem random_problem(const Shape& s, at::ScalarType type = at::kDouble,
                       uint64_t seed = 1) {
  at::manual_seed(seed);
  const auto real = at::TensorOptions().dtype(type);
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  Problem p;
  p.q = at::randn({s.b, s.h, s.n, s.d}, wide).to(type);
  p.k = at::randn({s.b, s.h, s.m, s.d}, wide).to(type);
  p.q_at = at::arange(s.n, wide) + 7;
  p.k_at = at::arange(s.m, wide) + 3;
  p.waves.frequency = at::rand({s.h, s.d, s.sines}, wide) / 2;
  p.waves.phase = at::randn({s.h, s.d, s.sines}, wide);
  p.waves.amplitude = at::randn({s.h, s.d, s.sines}, wide);
  if (s.gated) p.waves.constant = at::randn({s.h, s.d}, wide);
  p.mixing.width = s.width;
  if (s.dense) {
    p.mixing.z = at::randn({s.h, s.d, 2 * s.sines, s.width}, wide).to(real);
    if (s.gated) p.mixing.gate = at::randn({s.h, s.d, s.width}, wide).to(real);
  } else {
    const int64_t features = s.d * (2 * s.sines + (s.gated ? 1 : 0));
    const Tensor sign = at::randint(0, 2, {s.h, features}, at::kLong) * 2 - 1;
    p.mixing.fold = at::randint(1, s.width + 1, {s.h, features}, at::kLong) * sign;
  }
  return p;
}

std::pair<Tensor, Tensor> run(const Problem& p) {
  return sine_spe(p.q, p.k, p.waves, p.mixing, p.q_at, p.k_at);
}

// The definition, with the whole code in memory. [B, H, N, R]
Tensor by_definition(const Problem& p, const Tensor& x, const Tensor& at,
                     const Tensor& phase) {
  const Tensor turns = p.waves.frequency.unsqueeze(2) * at.view({-1, 1}) *
                       (2 * std::numbers::pi);  // [H, D, N, K]
  const Tensor angle = turns + phase.unsqueeze(2);
  const Tensor a = p.waves.amplitude.unsqueeze(2);
  Tensor wave = at::stack({a * angle.cos(), a * angle.sin()}, -1).flatten(3);
  Tensor matrix = p.mixing.z;
  const int64_t h = x.size(1), d = x.size(3), n = x.size(2), r = p.mixing.width;
  if (p.waves.constant.defined())
    wave = at::cat({wave, p.waves.constant.view({h, d, 1, 1}).expand({h, d, n, 1})}, 3);
  if (p.mixing.fold.defined()) {
    matrix = at::zeros({h, p.mixing.fold.size(1), r}, at::kDouble);
    matrix.scatter_(2, (p.mixing.fold.abs() - 1).unsqueeze(2),
                    p.mixing.fold.sign().to(at::kDouble).unsqueeze(2));
    matrix = matrix.view({h, d, -1, r});
  } else if (p.mixing.gate.defined()) {
    matrix = at::cat({matrix, p.mixing.gate.unsqueeze(2)}, 2);
  }
  const Tensor code = at::matmul(wave, matrix.to(at::kDouble));  // [H, D, N, R]
  return at::einsum("bhnd,hdnr->bhnr", {x.to(at::kDouble), code});
}

double distance(const Tensor& a, const Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const bool dense : {true, false})
    for (const bool gated : {true, false}) {
      all.push_back({2, 2, 37, 41, 5, 3, 12, gated, dense});
      all.push_back({1, 1, 1, 2, 1, 1, 1, gated, dense});
      all.push_back({1, 1, 300, 300, 7, 2, 33, gated, dense});
      all.push_back({5, 3, 33, 64, 16, 5, 64, gated, dense});
    }
  return all;
}

TEST(SineSpe, MatchesTheDefinitionThatFormsTheCode) {
  for (const Shape& s : shapes()) {
    for (const auto type : {at::kDouble, at::kFloat}) {
      const Problem p = random_problem(s, type);
      const auto [q, k] = run(p);
      const Tensor want_q = by_definition(p, p.q, p.q_at, p.waves.phase);
      const Tensor want_k =
          by_definition(p, p.k, p.k_at, at::zeros_like(p.waves.phase));
      const double rtol = type == at::kDouble ? 1e-12 : 3e-6;
      EXPECT_LE(distance(q, want_q), rtol * want_q.abs().max().item<double>());
      EXPECT_LE(distance(k, want_k), rtol * want_k.abs().max().item<double>());
      EXPECT_EQ(q.scalar_type(), type);
    }
  }
}

struct Named {
  std::string name;
  Tensor* tensor;
};

std::vector<Named> inputs(Problem& p) {
  std::vector<Named> all = {{"q", &p.q},
                            {"k", &p.k},
                            {"frequency", &p.waves.frequency},
                            {"phase", &p.waves.phase},
                            {"amplitude", &p.waves.amplitude}};
  if (p.waves.constant.defined()) all.push_back({"constant", &p.waves.constant});
  return all;
}

TEST(SineSpe, HasTheGradientsOfFiniteDifferencesForEveryInput) {
  for (const Shape& s : shapes()) {
    Problem p = random_problem(s);
    for (const Named& x : inputs(p)) x.tensor->set_requires_grad(true);
    const auto [q, k] = run(p);
    const Tensor gq = at::randn(q.sizes(), at::kDouble);
    const Tensor gk = at::randn(k.sizes(), at::kDouble);
    const auto loss = [&](const Problem& at) {
      const auto [a, b] = run(at);
      return (a * gq).sum() + (b * gk).sum();
    };
    torch::autograd::variable_list leaves;
    for (const Named& x : inputs(p)) leaves.push_back(*x.tensor);
    const auto gradients = torch::autograd::grad({loss(p)}, leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const at::NoGradGuard no_graph;
      const Tensor direction = at::randn(leaves[i].sizes(), at::kDouble);
      const auto moved = [&](double by) {
        Problem there = p;
        Tensor& x = *inputs(there)[i].tensor;
        x = x + direction * by;
        return loss(there).item<double>();
      };
      // A frequency moves the angles of far positions by much.
      const double h = inputs(p)[i].name == "frequency" ? 1e-8 : 1e-6;
      const double slope = (moved(h) - moved(-h)) / (2 * h);
      const double predicted = (gradients[i] * direction).sum().item<double>();
      const double scale =
          (gradients[i].norm() * direction.norm()).item<double>() + std::abs(slope);
      EXPECT_NEAR(slope, predicted, 5e-7 * scale + 1e-7) << inputs(p)[i].name;
    }
  }
}

TEST(SineSpe, HasTheSameGradientsInFloat) {
  for (const bool dense : {true, false}) {
    std::vector<Tensor> of[2];
    for (const auto type : {at::kDouble, at::kFloat}) {
      Problem p = random_problem({2, 2, 130, 90, 16, 5, 32, true, dense});
      p.q = p.q.to(type), p.k = p.k.to(type);
      if (dense)
        p.mixing.z = p.mixing.z.to(type), p.mixing.gate = p.mixing.gate.to(type);
      torch::autograd::variable_list leaves;
      for (const Named& x : inputs(p)) {
        x.tensor->set_requires_grad(true);
        leaves.push_back(*x.tensor);
      }
      const auto [q, k] = run(p);
      at::manual_seed(9);
      const Tensor gq = at::randn(q.sizes(), at::kDouble).to(type);
      const Tensor gk = at::randn(k.sizes(), at::kDouble).to(type);
      of[type == at::kFloat] =
          torch::autograd::grad({(q * gq).sum() + (k * gk).sum()}, leaves);
    }
    for (size_t i = 0; i < of[0].size(); ++i)
      EXPECT_LE(distance(of[0][i], of[1][i]),
                2e-5 * of[0][i].abs().max().item<double>())
          << "input " << i;
  }
}

TEST(SineSpe, TakesAnyStridesAndPositionsOfEachBatchRow) {
  for (const bool dense : {true, false}) {
    Problem p = random_problem({3, 2, 20, 20, 6, 2, 16, true, dense});
    const auto [q, k] = run(p);
    Problem odd = p;
    odd.q = p.q.permute({0, 2, 1, 3}).contiguous().permute({0, 2, 1, 3});
    odd.k = p.k.transpose(2, 3).contiguous().transpose(2, 3);
    odd.waves.frequency =
        p.waves.frequency.transpose(0, 2).contiguous().transpose(0, 2);
    EXPECT_TRUE(run(odd).first.equal(q));
    EXPECT_TRUE(run(odd).second.equal(k));

    odd.q_at = at::stack({p.q_at, p.q_at + 5, p.q_at.flip(0)});
    const Tensor each = run(odd).first;
    for (int64_t b = 0; b < 3; ++b) {
      Problem alone = p;
      alone.q = p.q.slice(0, b, b + 1), alone.k = p.k.slice(0, b, b + 1);
      alone.q_at = odd.q_at[b];
      EXPECT_LE(distance(run(alone).first[0], each[b]), 1e-12) << "batch row " << b;
    }
  }
}

TEST(SineSpe, TakesEmptyInputs) {
  for (const bool dense : {true, false}) {
    Shape s{2, 2, 0, 4, 3, 2, 8, true, dense};
    EXPECT_EQ(run(random_problem(s)).first.sizes(), at::IntArrayRef({2, 2, 0, 8}));
    s = {0, 2, 3, 3, 3, 2, 8, true, dense};
    EXPECT_EQ(run(random_problem(s)).first.sizes(), at::IntArrayRef({0, 2, 3, 8}));
  }
}

TEST(SineSpe, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const bool dense : {true, false}) {
    for (const int64_t heads : {1, 8}) {
      std::vector<Tensor> first;
      for (const int threads : {1, 2, 4}) {
        at::set_num_threads(threads);
        Problem p =
            random_problem({2, heads, 700, 700, 8, 2, 32, true, dense}, at::kFloat);
        torch::autograd::variable_list all;
        for (const Named& x : inputs(p)) {
          x.tensor->set_requires_grad(true);
          all.push_back(*x.tensor);
        }
        const auto [q, k] = run(p);
        std::vector<Tensor> results =
            torch::autograd::grad({(q * q).sum() + (k * k).sum()}, all);
        results.push_back(q.detach());
        results.push_back(k.detach());
        if (first.empty()) first = results;
        for (size_t i = 0; i < results.size(); ++i)
          EXPECT_TRUE(results[i].equal(first[i])) << i << " on " << threads;
      }
    }
  }
  at::set_num_threads(1);
}

std::string message_of(const Problem& p) {
  try {
    run(p);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was refused";
}

TEST(SineSpe, SaysInOneLineWhatItExpected) {
  const Problem good = random_problem({});
  Problem p = good;
  p.k = good.k.to(at::kFloat);
  EXPECT_THAT(message_of(p), HasSubstr("sine_spe: expected k"));
  p = good, p.waves.frequency = good.waves.frequency.to(at::kFloat);
  EXPECT_THAT(message_of(p), HasSubstr("sine_spe: expected frequency"));
  p = good, p.q_at = good.q_at.slice(0, 1);
  EXPECT_THAT(message_of(p), HasSubstr("sine_spe: expected q_at [37]"));
  p = good, p.mixing.z = Tensor();
  EXPECT_THAT(message_of(p), HasSubstr("either dense noise z or a fold"));
  p = good, p.mixing.gate = Tensor();
  EXPECT_THAT(message_of(p), HasSubstr("just where there is a constant"));
  p = random_problem({.dense = false}), p.mixing.fold[0][3] = 13;
  EXPECT_THAT(message_of(p), HasSubstr("every |fold| in [1, width = 12], got 13"));
  p = good, p.mixing.z = good.mixing.z.clone().set_requires_grad(true);
  EXPECT_THAT(message_of(p), HasSubstr("need no gradient"));
}

TEST(SineSpe, RefusesToBeDifferentiatedTwice) {
  Problem p = random_problem({});
  p.q.set_requires_grad(true);
  const Tensor out = run(p).first;
  const auto first =
      torch::autograd::grad({out.pow(2).sum()}, {p.q}, {}, true, true, true);
  EXPECT_THROW(torch::autograd::grad({first[0].pow(2).sum()}, {p.q}), std::exception);
}

}  // namespace
}  // namespace lagwise::ops
