// The contracts of docs/architecture.md for linear attention with gates and writing
// strengths, and what these must mean at their ends.

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lagwise/ops/testing/memory_problem.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using testing::Outcome;
using testing::Problem;
using testing::Rule;

constexpr Rule kRules[] = {Rule::gated, Rule::delta, Rule::gated_delta};

Problem bare_problem(Rule rule, testing::Shape shape = {}, bool with_state = true) {
  LinearOptions options;
  options.causal = true;
  options.denominator = "none";
  return testing::with_memory(testing::random_problem(shape, options, 0, with_state),
                              rule);
}

/// Rows [begin, end).
Problem part_of(const Problem& p, int64_t begin, int64_t end) {
  Problem part = p;
  for (Tensor* t : {&part.q, &part.k, &part.v, &part.options.log_decay,
                    &part.options.write_strength, &part.grad_out})
    if (t->defined()) *t = t->slice(2, begin, end);
  return part;
}

LinearResult call(const Problem& p) {
  return linear_attention_stateful(p.q, p.k, p.v, p.from, p.options);
}

void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  EXPECT_LE(testing::distance(a, b), tolerance * testing::largest(b) + 1e-13);
}

TEST(LinearMemory, AnySplitAndSingleStepsGiveTheWhole) {
  for (Rule rule : kRules) {
    const Problem p = bare_problem(rule);
    const LinearResult whole = call(p);
    for (int64_t cut : {0, 1, 16, 20, 33}) {
      Problem first = part_of(p, 0, cut), second = part_of(p, cut, 33);
      const LinearResult a = call(first);
      second.from = a.state;
      const LinearResult b = call(second);
      expect_near(at::cat({a.out, b.out}, 2), whole.out, 1e-12);
      expect_near(b.state.s, whole.state.s, 1e-12);
    }
    const LinearState state{p.from.s.clone(), p.from.z.clone()};
    for (int64_t t = 0; t < 33; ++t) {
      LinearOptions one = p.options;
      for (Tensor* x : {&one.log_decay, &one.write_strength})
        if (x->defined()) *x = x->select(2, t);
      const Tensor out = linear_attention_step(p.q.select(2, t), p.k.select(2, t),
                                               p.v.select(2, t), state, one);
      expect_near(out, whole.out.select(2, t), 1e-12);
    }
    expect_near(state.s, whole.state.s, 1e-12);
  }
}

TEST(LinearMemory, TheFutureIsNotRead) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (Rule rule : kRules) {
    Problem p = bare_problem(rule);
    const Tensor before = call(p).out.slice(2, 0, 20);
    for (Tensor* x :
         {&p.q, &p.k, &p.v, &p.options.log_decay, &p.options.write_strength})
      if (x->defined()) *x = x->clone(), x->slice(2, 20, 33).fill_(kNan);
    EXPECT_TRUE(call(p).out.slice(2, 0, 20).equal(before)) << static_cast<int>(rule);
  }
}

TEST(LinearMemory, AnyNumberOfThreadsGivesTheSameBits) {
  const int threads = at::get_num_threads();
  for (Rule rule : kRules)
    for (int64_t heads : {1, 5}) {
      const Problem p = testing::cast(
          bare_problem(
              rule, {.batch = 1, .heads = heads, .n = 300, .m = 300, .d = 40, .e = 96}),
          at::kFloat);
      at::set_num_threads(1);
      const Outcome one = testing::run(linear_attention_stateful, p);
      for (int count : {2, 3, 7}) {
        at::set_num_threads(count);
        testing::expect_same_bits(testing::run(linear_attention_stateful, p), one);
      }
      at::set_num_threads(threads);
    }
}

TEST(LinearMemory, GatesOfZeroAreNoGates) {
  const Problem p = bare_problem(Rule::gated);
  Problem open = p, none = p;
  open.options.log_decay = at::zeros(p.options.log_decay.sizes(), at::kDouble);
  none.options.log_decay = Tensor();
  EXPECT_TRUE(call(open).out.equal(call(none).out));
  EXPECT_TRUE(call(open).state.s.equal(call(none).state.s));
}

TEST(LinearMemory, AGateLikeADecayIsThatDecay) {
  Problem gated = bare_problem(Rule::gated), fixed = gated;
  fixed.options.log_decay = Tensor();
  fixed.options.decay = at::tensor({-0.25, -0.5, 0.0}, at::kDouble);
  gated.options.log_decay = fixed.options.decay.reshape({1, 3, 1}).expand({2, 3, 33});
  EXPECT_TRUE(call(gated).out.equal(call(fixed).out));
}

/// Nothing that these keys recall is ever there: the delta rule only adds.
TEST(LinearMemory, FullStrengthOnOrthonormalKeysOnlyAdds) {
  testing::Shape shape{.batch = 1, .heads = 2, .n = 20, .m = 20, .d = 24, .e = 7};
  Problem delta = bare_problem(Rule::delta, shape, /*with_state=*/false);
  delta.k = std::get<0>(at::linalg_qr(delta.k.transpose(-1, -2))).transpose(-1, -2);
  delta.options.write_strength = at::zeros({1, 2, 20}, at::kDouble) + 1;
  Problem add = delta;
  add.options.write_strength = Tensor();
  expect_near(call(delta).out, call(add).out, 1e-13);
  expect_near(call(delta).state.s, call(add).state.s, 1e-13);
}

TEST(LinearMemory, FullStrengthReplacesTheValueOfAKey) {
  const Tensor k = at::eye(4, at::kDouble).slice(0, 0, 1).expand({1, 1, 2, 4});
  const Tensor v = at::tensor({1.0, 2.0, 5.0, 7.0}, at::kDouble).reshape({1, 1, 2, 2});
  LinearOptions options;
  options.causal = true;
  options.denominator = "none";
  options.write_strength = at::zeros({1, 1, 2}, at::kDouble) + 1;
  EXPECT_TRUE(linear_attention(k, k, v, options).equal(v));
}

TEST(LinearMemory, ABorderMakesTwoSequences) {
  for (Rule rule : {Rule::gated, Rule::gated_delta}) {
    const Problem joined =
        testing::with_border(bare_problem(rule, {.n = 50, .m = 50}), 21);
    Problem first = part_of(joined, 0, 21), second = part_of(joined, 21, 50);
    second.from = {};
    first.grad_s = at::zeros(first.grad_s.sizes(), at::kDouble);
    const Outcome both = testing::run(linear_attention_stateful, joined);
    const Outcome a = testing::run(linear_attention_stateful, first);
    const Outcome b = testing::run(linear_attention_stateful, second);
    for (const testing::Result& x : both) {
      const auto of = [&](const Outcome& all) {
        for (const testing::Result& y : all)
          if (y.name == x.name) return y.value;
        return Tensor();
      };
      const Tensor left = of(a), right = of(b);
      if (x.name == "s") expect_near(x.value, right, 1e-12);
      if (x.name == "ds") expect_near(x.value, left, 1e-12);
      if (x.name == "s" || x.name == "z" || x.name == "ds" || x.name == "dz") continue;
      SCOPED_TRACE(x.name);
      expect_near(x.value, at::cat({left, right}, 2), 1e-12);
    }
  }
}

TEST(LinearMemory, PaddedAndPackedSequencesAreThemselves) {
  for (Rule rule : kRules) {
    const Problem p = bare_problem(rule, {.batch = 2, .n = 40, .m = 40}, false);
    Problem padded = p;
    padded.options.lengths = at::tensor({17, 40}, at::kLong);
    const Tensor out = call(padded).out;
    const Problem head = part_of(p, 0, 17);
    EXPECT_TRUE(
        out.slice(0, 0, 1).slice(2, 0, 17).equal(call(head).out.slice(0, 0, 1)));
    EXPECT_EQ(testing::largest(out.slice(0, 0, 1).slice(2, 17, 40)), 0.0);
    EXPECT_TRUE(out.slice(0, 1, 2).equal(call(p).out.slice(0, 1, 2)));

    Problem packed = bare_problem(rule, {.batch = 1, .n = 40, .m = 40}, false);
    const Problem second = part_of(packed, 17, 40);
    packed.options.cu_seqlens = at::tensor({0, 17, 17, 40}, at::kLong);
    const LinearResult all = call(packed);
    EXPECT_TRUE(all.out.slice(2, 17, 40).equal(call(second).out));
    EXPECT_TRUE(all.state.s.slice(0, 2, 3).equal(call(second).state.s));
  }
}

/// What the first line of a refusal must contain.
void expect_refused(const LinearOptions& options, const char* words) {
  const Tensor x = at::zeros({2, 3, 5, 4}, at::kDouble);
  try {
    linear_attention(x, x, x, options);
    ADD_FAILURE() << "was not refused: " << words;
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(), ::testing::HasSubstr(words));
  }
}

TEST(LinearMemory, RefusesWhatHasNoMeaning) {
  const Tensor rows = at::zeros({2, 3, 5}, at::kDouble);
  LinearOptions o;
  o.log_decay = rows;
  expect_refused(o, "expected no log_decay in full attention");
  o.causal = true;
  o.log_decay = rows.slice(2, 0, 4);
  expect_refused(o, "expected log_decay [B, H, N] = [2, 3, 5], got [2, 3, 4]");
  o.log_decay = rows.to(at::kFloat);
  expect_refused(o, "expected log_decay of the same type as q");
  o.log_decay = Tensor();
  o.write_strength = rows;
  expect_refused(o, "expected denominator 'none' with write_strength, got 'same'");
  o.denominator = "none";
  o.decay = at::zeros({3, 4}, at::kDouble);
  expect_refused(o, "expected decay [H] with write_strength, got one per channel");
  o.decay = Tensor();
  o.causal = false;
  expect_refused(o, "expected no write_strength in full attention");
  o.causal = true;
  o.log_scale = rows;
  expect_refused(o, "expected no log_scale with write_strength");
}

/// FAVOR's weights together with gates: the same as weights in the keys themselves.
TEST(LinearMemory, GatesGoTogetherWithLogScale) {
  LinearOptions options;
  options.causal = true;
  options.eps = 0;
  Problem p = testing::with_memory(
      testing::random_problem({.n = 300, .m = 300}, options, 1, false), Rule::gated);
  Problem scaled = p;
  testing::Random random(3);
  scaled.options.log_scale = random.uniform({2, 3, 300}, -2.0F, 2.0F);
  const auto gradients = [](Problem x, bool in_keys) {
    for (Tensor* t : {&x.q, &x.k, &x.v, &x.options.log_decay, &x.options.log_scale})
      *t = t->detach().set_requires_grad(true);
    const Tensor c = x.options.log_scale;
    Tensor k = x.k;
    if (in_keys) k = k * c.exp().unsqueeze(-1), x.options.log_scale = Tensor();
    const Tensor out = linear_attention(x.q, k, x.v, x.options);
    auto all = torch::autograd::grad({out}, {x.q, x.k, x.v, x.options.log_decay, c},
                                     {x.grad_out});
    all.push_back(out.detach());
    return all;
  };
  const auto ours = gradients(scaled, false), plain = gradients(scaled, true);
  for (size_t i = 0; i < ours.size(); ++i) {
    SCOPED_TRACE(i);
    expect_near(ours[i], plain[i], 1e-10);
  }
}

}  // namespace
}  // namespace lagwise::ops
