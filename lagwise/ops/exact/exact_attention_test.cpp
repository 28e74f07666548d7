// The contracts of docs/architecture.md for exact attention, and its refusals.

#include "lagwise/ops/exact_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "lagwise/ops/testing/exact_problem.h"
#include "lagwise/ops/testing/exact_reference.h"

namespace lagwise::ops {
namespace {

using testing::ExactProblem;
using testing::ExactShape;
using testing::Outcome;

ExactOptions causal() {
  ExactOptions options;
  options.causal = true;
  return options;
}

at::Tensor attend(const ExactProblem& p) {
  return exact_attention(p.q, p.k, p.v, p.options);
}

// Tables of a problem over rows [begin, end) of queries and the first `keys` keys.
ExactProblem part_of(const ExactProblem& p, int64_t begin, int64_t end, int64_t keys) {
  ExactProblem part = p;
  part.q = p.q.slice(2, begin, end);
  part.k = p.k.slice(2, 0, keys), part.v = p.v.slice(2, 0, keys);
  part.options.query_start = begin, part.options.key_start = 0;
  const int64_t first = begin - (keys - 1) + p.k.size(2) - 1;
  const int64_t lags = end - begin + keys - 1;
  for (at::Tensor* t :
       {&part.options.lag_bias, &part.options.lag_keys, &part.options.lag_values})
    if (t->defined()) *t = t->narrow(1, first, lags);
  return part;
}

TEST(ExactAttention, DecodingStepByStepEqualsTheWhole) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const ExactShape shape{2, 3, 130, 130, 9, 5, 3, 1, 3};
    const ExactProblem p = testing::cast(testing::random_exact(shape, causal()), type);
    const at::Tensor whole = attend(p);
    for (const int64_t i : {0, 1, 47, 48, 100, 129}) {
      const at::Tensor step = attend(part_of(p, i, i + 1, i + 1));
      EXPECT_LE(testing::distance(step, whole.slice(2, i, i + 1)),
                type == at::kDouble ? 1e-12 : 2e-6)
          << "row " << i;
    }
    const at::Tensor rest = attend(part_of(p, 60, 130, 130));
    EXPECT_LE(testing::distance(rest, whole.slice(2, 60, 130)),
              type == at::kDouble ? 1e-12 : 2e-6);
  }
}

TEST(ExactAttention, NoRowDependsOnLaterRows) {
  const ExactShape shape{1, 2, 300, 300, 19, 9, 2, 2, 2};
  const ExactProblem p =
      testing::cast(testing::random_exact(shape, causal()), at::kFloat);
  const at::Tensor calm = attend(p);
  for (const int64_t begin : {1, 15, 31, 48, 191, 192, 250})
    for (const double value : {3.5, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
      ExactProblem spoilt = p;
      for (at::Tensor* t : {&spoilt.q, &spoilt.k, &spoilt.v}) {
        *t = t->clone();
        t->slice(2, begin, 300).fill_(value);
      }
      EXPECT_TRUE(attend(spoilt).slice(2, 0, begin).equal(calm.slice(2, 0, begin)))
          << "rows before " << begin << " changed with " << value << " after them";
    }
}

TEST(ExactAttention, PaddingMayHoldAnything) {
  ExactProblem p =
      testing::cast(testing::random_exact({2, 2, 70, 70, 9, 5}, {}), at::kFloat);
  p.options.lengths = at::tensor(std::vector<int64_t>{70, 33}, at::kLong);
  p.options.key_lengths = at::tensor(std::vector<int64_t>{12, 51}, at::kLong);
  const Outcome calm = testing::run(exact_attention, p);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (at::Tensor* t : {&p.q, &p.grad_out}) (*t)[1].slice(1, 33).fill_(nan);
  for (at::Tensor* t : {&p.k, &p.v})
    (*t)[0].slice(1, 12).fill_(nan), (*t)[1].slice(1, 51).fill_(nan);
  testing::expect_same_bits(testing::run(exact_attention, p), calm);
}

TEST(ExactAttention, APackedSequenceEqualsItselfAlone) {
  ExactProblem p = testing::random_exact({1, 2, 90, 90, 9, 5}, causal());
  p.options.cu_seqlens = at::tensor(std::vector<int64_t>{0, 20, 21, 90}, at::kLong);
  const at::Tensor all = attend(p);
  const at::Tensor alone =
      exact_attention(p.q.slice(2, 21), p.k.slice(2, 21), p.v.slice(2, 21), causal());
  EXPECT_TRUE(all.slice(2, 21).equal(alone));
}

// Queries 21..30 and keys 40..70: a sequence with a cache of 21 keys more.
TEST(ExactAttention, APackedSequenceWithACacheEqualsItselfAlone) {
  const ExactProblem p = testing::random_exact({1, 2, 35, 75, 9, 5, 2, 1, 1}, causal());
  ExactOptions packed = p.options, own = p.options;
  packed.cu_seqlens = at::tensor(std::vector<int64_t>{0, 21, 30, 35}, at::kLong);
  packed.key_cu_seqlens = at::tensor(std::vector<int64_t>{0, 40, 70, 75}, at::kLong);
  for (at::Tensor* t : {&own.lag_bias, &own.lag_keys, &own.lag_values})
    *t = t->narrow(1, 35 - 9, 9 + 30 - 1);  // lags -8 .. 29, entry lag + N - 1
  const at::Tensor all = exact_attention(p.q, p.k, p.v, packed);
  const at::Tensor alone = exact_attention(p.q.slice(2, 21, 30), p.k.slice(2, 40, 70),
                                           p.v.slice(2, 40, 70), own);
  EXPECT_TRUE(all.slice(2, 21, 30).equal(alone));
}

// One row of a padded batch as a call of its own: its queries, its keys, its lags.
at::Tensor row_alone(const ExactProblem& p, int64_t b, int64_t queries, int64_t keys) {
  ExactOptions own = p.options;
  own.lengths = own.key_lengths = at::Tensor();
  for (at::Tensor* t : {&own.lag_bias, &own.lag_keys, &own.lag_values})
    if (t->defined()) *t = t->narrow(1, p.q.size(2) - queries, queries + keys - 1);
  const auto cut = [&](const at::Tensor& x, int64_t count) {
    return x.slice(0, b, b + 1).slice(2, 0, count);
  };
  return exact_attention(cut(p.q, queries), cut(p.k, keys), cut(p.v, keys), own);
}

// Decoding with padded caches: the last query of each row stands at its own last key,
// and reads the tables by the lag that gives.
TEST(ExactAttention, EachRowOfAPaddedBatchStandsAtItsOwnLastKey) {
  for (const bool with_lengths : {false, true})
    for (const int64_t window : {0, 6}) {
      ExactProblem p = testing::random_exact({4, 2, 4, 50, 9, 5, 2, 1, 1}, causal());
      if (window > 0) p.options.window = window;
      const std::vector<int64_t> keys = {50, 17, 3, 0};  // 3: the first query is blind
      const std::vector<int64_t> queries = with_lengths
                                               ? std::vector<int64_t>{4, 1, 3, 2}
                                               : std::vector<int64_t>{4, 4, 4, 4};
      p.options.key_lengths = at::tensor(keys, at::kLong);
      if (with_lengths) p.options.lengths = at::tensor(queries, at::kLong);
      const at::Tensor out = attend(p);
      for (int64_t b = 0; b < 3; ++b) {
        const int64_t n = queries[size_t(b)], m = keys[size_t(b)];
        EXPECT_TRUE(out.slice(0, b, b + 1).slice(2, 0, n).equal(row_alone(p, b, n, m)))
            << "row " << b << ", window " << window;
        EXPECT_EQ(testing::largest(out[b].slice(1, n)), 0.0);
      }
      EXPECT_EQ(testing::largest(out[3]), 0.0);
    }
}

// Starts that are given hold for every row, whatever its length.
TEST(ExactAttention, KeysPastTheirLengthAreHiddenFromEveryQuery) {
  ExactProblem p = testing::random_exact({3, 2, 4, 50, 9, 5}, causal());
  p.options.query_start = 46;
  p.options.key_lengths = at::tensor(std::vector<int64_t>{50, 17, 0}, at::kLong);
  const at::Tensor out = attend(p);
  EXPECT_TRUE(out.slice(0, 1, 2).equal(row_alone(p, 1, 4, 17)));
  EXPECT_GT(testing::largest(out[0]), 0.0);
  EXPECT_EQ(testing::largest(out[2]), 0.0);
}

TEST(ExactAttention, RowsThatSeeNothingGiveZerosAndNoGradient) {
  ExactProblem p = testing::random_exact({1, 2, 50, 20, 9, 5, 2, 1, 1}, causal());
  const Outcome r = testing::run(exact_attention, p);  // the first 30 rows are blind
  EXPECT_EQ(testing::largest(r[0].value.slice(2, 0, 30)), 0.0);
  EXPECT_EQ(testing::largest(r[1].value.slice(2, 0, 30)), 0.0);
  p.options.lag_bias.fill_(-std::numeric_limits<double>::infinity());
  for (const testing::Result& x : testing::run(exact_attention, p))
    EXPECT_EQ(testing::largest(x.value), 0.0) << x.name;
}

TEST(ExactAttention, AnyNumberOfThreadsGivesTheSameBits) {
  const ExactShape shapes[] = {{2, 3, 130, 130, 20, 9, 3, 1, 3},
                               {1, 1, 900, 1100, 16, 24, 1, 1, 1},
                               {3, 4, 40, 60, 9, 7, 4, 1, 0}};
  const int before = at::get_num_threads();
  for (const ExactShape& shape : shapes)
    for (const bool causally : {false, true}) {
      ExactOptions options;
      options.causal = causally;
      const ExactProblem p =
          testing::cast(testing::random_exact(shape, options), at::kFloat);
      at::set_num_threads(1);
      const Outcome alone = testing::run(exact_attention, p);
      for (const int threads : {2, 4}) {
        SCOPED_TRACE("N " + std::to_string(shape.n) + ", threads " +
                     std::to_string(threads));
        at::set_num_threads(threads);
        testing::expect_same_bits(testing::run(exact_attention, p), alone);
      }
    }
  at::set_num_threads(before);
}

TEST(ExactAttention, RefusesASecondDerivative) {
  ExactProblem p = testing::random_exact({1, 1, 3, 3, 2, 2}, {});
  p.q.set_requires_grad(true);
  const at::Tensor first =
      torch::autograd::grad({attend(p)}, {p.q}, {p.grad_out}, true, true)[0];
  EXPECT_THROW(torch::autograd::grad({first.sum()}, {p.q}), c10::Error);
}

// A correct call with B = 2, H = 3, N = 4, M = 6, D = 5, E = 7, to be spoilt.
struct Call {
  at::Tensor q = at::ones({2, 3, 4, 5}), k = at::ones({2, 3, 6, 5});
  at::Tensor v = at::ones({2, 3, 6, 7});
  ExactOptions options;
};

void expect_refused(const Call& call, const std::vector<std::string>& parts) {
  std::string said = "nothing was refused";
  try {
    exact_attention(call.q, call.k, call.v, call.options);
  } catch (const c10::Error& error) {
    said = error.what_without_backtrace();
  }
  EXPECT_EQ(said.rfind("exact_attention: ", 0), 0U) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  for (const std::string& part : parts)
    EXPECT_NE(said.find(part), std::string::npos) << "'" << part << "' not in " << said;
}

TEST(ExactAttentionErrors, TheCallTheseTestsSpoilIsCorrect) {
  const Call call;
  EXPECT_NO_THROW(exact_attention(call.q, call.k, call.v, call.options));
}

TEST(ExactAttentionErrors, RefusesShapesAndTypesThatDoNotFit) {
  Call rank, width, values, type, mixed;
  rank.q = at::ones({3, 4, 5});
  expect_refused(rank, {"expected q [B, H, N, D]", "got [3, 4, 5]"});
  width.k = at::ones({2, 3, 6, 4});
  expect_refused(width, {"expected k [B, H, M, D]", "got [2, 3, 6, 4]"});
  values.v = at::ones({2, 3, 5, 7});
  expect_refused(values, {"expected v [B, H, M, E]", "got [2, 3, 5, 7]"});
  for (at::Tensor* t : {&type.q, &type.k, &type.v}) *t = t->to(at::kHalf);
  expect_refused(type, {"Float or Double", "got Half"});
  mixed.k = mixed.k.to(at::kDouble);
  expect_refused(mixed, {"expected k", "Float", "got Double"});
}

TEST(ExactAttentionErrors, RefusesTablesThatDoNotFit) {
  Call bias, keys, lag_values;
  bias.options.lag_bias = at::ones({3, 10});
  expect_refused(bias, {"expected lag_bias [1 or H, N+M-1] = [3, 9]", "got [3, 10]"});
  keys.options.lag_keys = at::ones({2, 9, 5});
  expect_refused(keys, {"expected lag_keys", "[3, 9, 5]", "got [2, 9, 5]"});
  lag_values.options.lag_values = at::ones({1, 9, 5});
  expect_refused(lag_values, {"expected lag_values", "[1, 9, 7]", "got [1, 9, 5]"});
}

TEST(ExactAttentionErrors, RefusesNumbersOutOfRange) {
  Call window, scale, lengths, many, lone, ends, both, batch;
  window.options.window = 0;
  expect_refused(window, {"expected window >= 1", "got 0"});
  scale.options.scale = std::numeric_limits<double>::infinity();
  expect_refused(scale, {"finite scale", "got inf"});
  const auto whole = [](const std::vector<int64_t>& x) {
    return at::tensor(x, at::kLong);
  };
  lengths.options.key_lengths = whole({3, 7});
  expect_refused(lengths, {"expected key_lengths from 0 to 6", "got 7"});
  many.options.key_lengths = whole({3});
  expect_refused(many, {"expected key_lengths [B] = [2]", "got [1]"});
  lone.options.lengths = whole({3, 4});
  expect_refused(lone, {"expected key_lengths with lengths", "N = 4", "M = 6"});
  batch.options.cu_seqlens = whole({0, 4});
  expect_refused(batch, {"expected B = 1 with cu_seqlens", "got 2"});
  ends.q = ends.k = ends.v = at::ones({1, 3, 4, 5});
  ends.options.cu_seqlens = whole({0, 3, 2, 4});
  expect_refused(ends, {"cu_seqlens that never falls", "got 3 before 2"});
  both = std::move(ends);
  both.options.lengths = whole({3});
  expect_refused(both, {"lengths (padded) or cu_seqlens (packed), got both"});
}

}  // namespace
}  // namespace lagwise::ops
