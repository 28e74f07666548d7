// The contracts of docs/architecture.md for linear attention: full = chunked =
// step by step, causal means causal, any shape, no NaN, same bits on any number
// of threads.

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_problem.h"
#include "lagwise/ops/testing/linear_reference.h"

namespace lagwise::ops {
namespace {

using testing::Outcome;
using testing::Problem;
using testing::Shape;

// One way to use the operator, by its options.
struct Use {
  const char* denominator;
  const char* map;
  int decay_axes;
};
constexpr Use kUses[] = {{"same", "elu1", 0},     {"same", "relu", 1},
                         {"same", "elu1", 2},     {"separate", "elu1", 1},
                         {"separate", "none", 2}, {"none", "none", 1},
                         {"none", "none", 0}};

LinearOptions options_of(const Use& use, bool causal = true) {
  LinearOptions options;
  options.causal = causal;
  options.denominator = use.denominator;
  options.feature_map = use.map;
  return options;
}

std::string describe(const Use& use) {
  return std::string(use.denominator) + " " + use.map + " decay axes " +
         std::to_string(use.decay_axes);
}

// Rows [begin, end) of a causal problem.
Problem rows_of(const Problem& p, int64_t begin, int64_t end) {
  Problem part = p;
  for (at::Tensor* t : {&part.q, &part.k, &part.v, &part.options.q_norm,
                        &part.options.k_norm, &part.grad_out}) {
    if (t->defined()) *t = t->slice(2, begin, end);
  }
  return part;
}

LinearResult attend(const Problem& p) {
  return linear_attention_stateful(p.q, p.k, p.v, p.from, p.options);
}

Outcome outcome_of(const LinearResult& r) {
  return {{"out", r.out}, {"s", r.state.s}, {"z", r.state.z}};
}

// Cuts of `rows` rows into random pieces; every third piece is a single row.
LinearResult attend_in_pieces(const Problem& p, uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<at::Tensor> out;
  LinearState state = p.from;
  int64_t begin = 0;
  for (int piece = 0; begin < p.q.size(2); ++piece) {
    const int64_t length = piece % 3 == 0 ? 1 : static_cast<int64_t>(bits() % 90);
    const int64_t end = std::min(begin + length, p.q.size(2));
    Problem part = rows_of(p, begin, end);
    part.from = state;
    const LinearResult r = attend(part);
    out.push_back(r.out);
    state = r.state;
    begin = end;
  }
  return {at::cat(out, 2), state};
}

LinearResult attend_by_steps(const Problem& p) {
  LinearState state = {p.from.s.clone(), p.from.z.clone()};
  std::vector<at::Tensor> out;
  for (int64_t i = 0; i < p.q.size(2); ++i) {
    LinearOptions options = p.options;
    if (options.q_norm.defined()) options.q_norm = p.options.q_norm.select(2, i);
    if (options.k_norm.defined()) options.k_norm = p.options.k_norm.select(2, i);
    out.push_back(linear_attention_step(p.q.select(2, i), p.k.select(2, i),
                                        p.v.select(2, i), state, options)
                      .unsqueeze(2));
  }
  return {at::cat(out, 2), state};
}

void expect_any_split_to_agree(const Problem& p, uint64_t seed, double tolerance) {
  const Outcome whole = outcome_of(attend(p));
  {
    SCOPED_TRACE("in pieces");
    testing::expect_close(outcome_of(attend_in_pieces(p, seed)), whole, tolerance);
  }
  SCOPED_TRACE("step by step");
  testing::expect_close(outcome_of(attend_by_steps(p)), whole, tolerance);
}

TEST(LinearAttentionContract, TheWholeEqualsItsPiecesAndItsSteps) {
  for (const Use& use : kUses) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(describe(use) + " seed " + std::to_string(seed));
      const Shape shape{2, 2, 301, 301, 19, 9, 5};
      const Problem p =
          testing::random_problem(shape, options_of(use), use.decay_axes, true, seed);
      expect_any_split_to_agree(p, seed, 1e-10);
      expect_any_split_to_agree(testing::cast(p, at::kFloat), seed, 1e-5);
    }
  }
}

TEST(LinearAttentionContract, ALongHeadEqualsItsPieces) {
  for (const Use& use : kUses) {
    SCOPED_TRACE(describe(use));
    const Shape shape{1, 1, 9001, 9001, 8, 5, 5};
    const Problem p =
        testing::random_problem(shape, options_of(use), use.decay_axes, true);
    testing::expect_close(outcome_of(attend_in_pieces(p, 1)), outcome_of(attend(p)),
                          1e-10);
  }
}

TEST(LinearAttentionContract, GradientsFlowThroughTheStateBetweenTwoHalves) {
  const auto two_halves = [](const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, const LinearState& from,
                             const LinearOptions& options) -> LinearResult {
    const Problem p{q, k, v, options, from, {}, {}, q};
    const LinearResult first = attend(rows_of(p, 0, 20));
    Problem rest = rows_of(p, 20, q.size(2));
    rest.from = first.state;
    const LinearResult second = attend(rest);
    return {at::cat({first.out, second.out}, 2), second.state};
  };
  for (const Use& use : kUses) {
    SCOPED_TRACE(describe(use));
    const Problem p =
        testing::random_problem({}, options_of(use), use.decay_axes, true);
    testing::expect_close(testing::run(two_halves, p),
                          testing::run(linear_attention_stateful, p), 1e-10);
  }
}

TEST(LinearAttentionContract, FullAttentionTakesItsKeysInPieces) {
  for (const char* denominator : {"same", "separate", "none"}) {
    SCOPED_TRACE(denominator);
    const LinearOptions options = options_of({denominator, "elu1", 0}, false);
    const Problem p =
        testing::random_problem({2, 2, 40, 70, 9, 5, 5}, options, 0, true);
    Problem first = p, rest = p;
    for (Problem* part : {&first, &rest}) {
      const bool head = part == &first;
      for (at::Tensor* t : {&part->k, &part->v, &part->options.k_norm}) {
        if (t->defined()) *t = head ? t->slice(2, 0, 33) : t->slice(2, 33, 70);
      }
    }
    rest.from = attend(first).state;
    testing::expect_close(outcome_of(attend(rest)), outcome_of(attend(p)), 1e-10);
  }
}

// The same problem with rows from `begin` on replaced by something hostile.
Problem spoil_future(const Problem& p, int64_t begin, double value) {
  Problem spoilt = p;
  for (at::Tensor* t : {&spoilt.q, &spoilt.k, &spoilt.v, &spoilt.options.q_norm,
                        &spoilt.options.k_norm}) {
    if (!t->defined()) continue;
    *t = t->clone();
    t->slice(2, begin, t->size(2)).fill_(value);
  }
  return spoilt;
}

void expect_blind_to_the_future(const Problem& p, const std::vector<int64_t>& begins) {
  const at::Tensor calm = attend(p).out;
  for (const int64_t begin : begins) {
    for (const double value : {3.5, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
      const at::Tensor spoilt = attend(spoil_future(p, begin, value)).out;
      EXPECT_TRUE(spoilt.slice(2, 0, begin).equal(calm.slice(2, 0, begin)))
          << "rows before " << begin << " changed with " << value << " after them";
    }
  }
}

TEST(LinearAttentionContract, NoRowDependsOnLaterRows) {
  for (const Use& use : kUses) {
    SCOPED_TRACE(describe(use));
    const Shape shape{1, 2, 100, 100, 19, 9, 5};
    const Problem p =
        testing::random_problem(shape, options_of(use), use.decay_axes, true);
    const std::vector<int64_t> begins = {1, 2, 15, 31, 32, 33, 64, 70, 99};
    expect_blind_to_the_future(p, begins);
    expect_blind_to_the_future(testing::cast(p, at::kFloat), begins);
  }
}

TEST(LinearAttentionContract, NoRowOfALongHeadDependsOnLaterRows) {
  for (const Use& use : kUses) {
    SCOPED_TRACE(describe(use));
    const Shape shape{1, 1, 5000, 5000, 8, 5, 5};
    const Problem p =
        testing::random_problem(shape, options_of(use), use.decay_axes, true);
    expect_blind_to_the_future(testing::cast(p, at::kFloat), {1, 700, 2500, 4999});
  }
}

// Outputs and every gradient with 1, 2 and 4 threads.
void expect_same_bits_on_any_number_of_threads(const Problem& p) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Outcome alone = testing::run(linear_attention_stateful, p);
  for (const int threads : {2, 4}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    at::set_num_threads(threads);
    testing::expect_same_bits(testing::run(linear_attention_stateful, p), alone);
  }
  at::set_num_threads(before);
}

TEST(LinearAttentionContract, AnyNumberOfThreadsGivesTheSameBits) {
  const Shape shapes[] = {{2, 3, 130, 130, 20, 9, 5},
                          {1, 1, 5000, 5000, 16, 24, 5},
                          {1, 2, 4500, 4500, 9, 7, 5},
                          {1, 1, 50, 50, 64, 191, 5}};
  for (const Use& use : kUses) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(describe(use) + " N " + std::to_string(shape.n));
      const Problem p =
          testing::random_problem(shape, options_of(use), use.decay_axes, true);
      expect_same_bits_on_any_number_of_threads(p);
      expect_same_bits_on_any_number_of_threads(testing::cast(p, at::kFloat));
      if (use.decay_axes > 0) continue;
      const Problem full =
          testing::random_problem(shape, options_of(use, false), 0, true);
      expect_same_bits_on_any_number_of_threads(testing::cast(full, at::kFloat));
    }
  }
}

}  // namespace
}  // namespace lagwise::ops
