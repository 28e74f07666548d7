// Padding on the left: a batch whose rows begin at `starts` is the same attention as each
// sequence on its own, bit for bit, forwards and backwards.

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "lagwise/ops/testing/exact_problem.h"

namespace lagwise::ops {
namespace {

using testing::ExactProblem;
using testing::Outcome;

constexpr int64_t kRoom = 70;
const std::vector<int64_t> kStarts = {33, 0, 70, 69}, kLengths = {20, 70, 0, 1};

at::Tensor numbers(const std::vector<int64_t>& x) {
  return at::tensor(at::ArrayRef<int64_t>(x), at::kLong);
}

struct Case {
  const char* name;
  bool causal, lengths;
  int64_t queries;  ///< kRoom: cut as the keys are; fewer: all real, at the end
  bool given;       ///< query_start is given
  int64_t window;   ///< 0: none
};

struct Span {
  int64_t begin, end;
};
Span keys_of(const Case& c, int64_t b) {
  const int64_t begin = kStarts[static_cast<size_t>(b)];
  return {begin, c.lengths ? begin + kLengths[static_cast<size_t>(b)] : kRoom};
}
Span queries_of(const Case& c, int64_t b) {
  return c.queries == kRoom ? keys_of(c, b) : Span{0, c.queries};
}

ExactProblem padded(const Case& c) {
  ExactOptions options;
  options.causal = c.causal;
  if (c.window) options.window = c.window;
  if (c.given) options.query_start = 3, options.key_start = 1;
  ExactProblem p = testing::random_exact({.batch = 4,
                                          .heads = 2,
                                          .n = c.queries,
                                          .m = kRoom,
                                          .bias = 2,
                                          .keys = 1,
                                          .values = 2,
                                          .key_bias = true},
                                         options);
  ExactOptions& o = p.options;
  (c.queries == kRoom ? o.starts : o.key_starts) = numbers(kStarts);
  if (c.lengths) (c.queries == kRoom ? o.lengths : o.key_lengths) = numbers(kLengths);
  return p;
}

/// The entries of a table [1|H, N+M-1, ..] that a sequence reads: those of its lags.
at::Tensor entries(const ExactProblem& p, const Case& c, const at::Tensor& x, int64_t n,
                   int64_t m) {
  const int64_t first = c.given ? p.k.size(2) - m : p.q.size(2) - n;
  return x.slice(1, first, first + std::max<int64_t>(0, n + m - 1));
}

ExactProblem alone(const ExactProblem& p, const Case& c, int64_t b) {
  const Span q = queries_of(c, b), k = keys_of(c, b);
  const auto part = [&](const at::Tensor& x, const Span& at) {
    return x.narrow(0, b, 1).slice(2, at.begin, at.end);
  };
  ExactProblem one = p;
  ExactOptions& o = one.options;
  o.starts = o.key_starts = o.lengths = o.key_lengths = at::Tensor();
  one.q = part(p.q, q), one.grad_out = part(p.grad_out, q);
  one.k = part(p.k, k), one.v = part(p.v, k), o.key_bias = part(o.key_bias, k);
  for (at::Tensor* x : {&o.lag_bias, &o.lag_keys, &o.lag_values})
    *x = entries(p, c, *x, q.end - q.begin, k.end - k.begin);
  return one;
}

class ExactLeftPadding : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Cases, ExactLeftPadding,
                         ::testing::Values(Case{"Causal", true, false, kRoom, false, 0},
                                           Case{"Lengths", true, true, kRoom, false, 0},
                                           Case{"Full", false, false, kRoom, false, 0},
                                           Case{"Window", true, false, kRoom, false, 9},
                                           Case{"Given", true, true, kRoom, true, 0},
                                           Case{"OneQuery", true, false, 1, false, 0},
                                           Case{"Few", true, true, 5, false, 12}),
                         [](const auto& info) { return info.param.name; });

TEST_P(ExactLeftPadding, EqualsEachSequenceAlone) {
  const Case& c = GetParam();
  const ExactProblem p = padded(c);
  const Outcome got = testing::run(exact_attention, p);
  Outcome tables;  // their gradients are sums over sequences
  for (const auto& x : got)
    tables.push_back({x.name, at::zeros(x.value.sizes(), x.value.options())});
  for (int64_t b = 0; b < 4; ++b) {
    const Span q = queries_of(c, b), k = keys_of(c, b);
    const Outcome want = testing::run(exact_attention, alone(p, c, b));
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(got[i].name + " of sequence " + std::to_string(b));
      if (got[i].name.rfind("dlag_", 0) == 0) {
        entries(p, c, tables[i].value, q.end - q.begin, k.end - k.begin)
            .add_(want[i].value);
        continue;
      }
      const Span at = got[i].name == "out" || got[i].name == "dq" ? q : k;
      const at::Tensor row = got[i].value.narrow(0, b, 1);
      EXPECT_TRUE(row.slice(2, at.begin, at.end).equal(want[i].value));
      EXPECT_FALSE(row.slice(2, 0, at.begin).ne(0).any().item<bool>());
      EXPECT_FALSE(row.slice(2, at.end).ne(0).any().item<bool>());
    }
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].name.rfind("dlag_", 0) != 0) continue;
    EXPECT_LE(testing::distance(got[i].value, tables[i].value),
              1e-12 * testing::largest(tables[i].value) + 1e-13)
        << got[i].name;
  }
}

TEST_P(ExactLeftPadding, NeverReadsThePadding) {
  const Case& c = GetParam();
  ExactProblem p = padded(c);
  const Outcome clean = testing::run(exact_attention, p);
  const auto spoil = [&](at::Tensor& x, Span (*real)(const Case&, int64_t)) {
    x = x.clone();
    for (int64_t b = 0; b < 4; ++b) {
      const Span at = real(c, b);
      x[b].slice(1, 0, at.begin).fill_(std::numeric_limits<double>::quiet_NaN());
      x[b].slice(1, at.end).fill_(std::numeric_limits<double>::quiet_NaN());
    }
  };
  spoil(p.q, queries_of), spoil(p.grad_out, queries_of);
  spoil(p.k, keys_of), spoil(p.v, keys_of), spoil(p.options.key_bias, keys_of);
  testing::expect_same_bits(testing::run(exact_attention, p), clean);
}

TEST(ExactLeftPaddingErrors, RefusesPackedSequences) {
  const at::Tensor x = at::zeros({1, 1, 5, 2});
  ExactOptions options;
  options.starts = numbers({2}), options.cu_seqlens = numbers({0, 5});
  std::string said = "nothing was refused";
  try {
    exact_attention(x, x, x, options);
  } catch (const c10::Error& error) {
    said = error.what_without_backtrace();
  }
  EXPECT_EQ(said,
            "exact_attention: expected starts or lengths (padded) or cu_seqlens "
            "(packed), got both");
}

}  // namespace
}  // namespace lagwise::ops
