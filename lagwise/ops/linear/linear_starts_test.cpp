// Padding on the left: a batch whose rows begin at `starts` is the same attention as each
// sequence on its own: bit for bit forwards, and but for the order of sums backwards, where
// few heads take other passes than many.

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/memory_problem.h"

namespace lagwise::ops {
namespace {

using testing::Outcome;
using testing::Problem;
using testing::Rule;

constexpr int64_t kRoom = 40;
const std::vector<int64_t> kStarts = {17, 0, 40, 39}, kLengths = {9, 31, 0, 1};

at::Tensor numbers(const std::vector<int64_t>& x) {
  return at::tensor(at::ArrayRef<int64_t>(x), at::kLong);
}

struct Case {
  const char* name;
  bool causal, lengths, state;
  const char* denominator;
  int decay_axes;
  std::optional<Rule> rule;
  bool log_scale;
};

Problem padded(const Case& c) {
  LinearOptions options;
  options.causal = c.causal;
  options.denominator = c.denominator;
  if (c.log_scale) options.eps = 0;
  Problem p =
      testing::random_problem({.batch = 4, .n = kRoom, .m = kRoom, .d = 9, .e = 6},
                              options, c.decay_axes, c.state);
  if (c.rule) p = testing::with_memory(p, *c.rule);
  if (c.log_scale)
    p.options.log_scale = testing::Random(5).uniform({4, 3, kRoom}, -2.0F, 2.0F);
  p.options.starts = numbers(kStarts);
  if (c.lengths) p.options.lengths = numbers(kLengths);
  return p;
}

/// The real rows of batch row b: those of axis 2 of everything that has rows.
struct Span {
  int64_t begin, end;
};
Span real_rows(const Case& c, int64_t b) {
  const int64_t begin = kStarts[static_cast<size_t>(b)];
  return {begin, c.lengths ? begin + kLengths[static_cast<size_t>(b)] : kRoom};
}

Problem alone(const Problem& p, const Case& c, int64_t b) {
  const Span at = real_rows(c, b);
  const auto part = [&](const at::Tensor& x) {
    return x.narrow(0, b, 1).slice(2, at.begin, at.end);
  };
  Problem one = p;
  LinearOptions& o = one.options;
  o.starts = o.lengths = at::Tensor();
  for (at::Tensor* x : {&one.q, &one.k, &one.v, &one.grad_out, &o.q_norm, &o.k_norm,
                        &o.log_scale, &o.log_decay, &o.write_strength})
    if (x->defined()) *x = part(*x);
  for (at::Tensor* x : {&one.from.s, &one.from.z, &one.grad_s, &one.grad_z})
    if (x->defined()) *x = x->narrow(0, b, 1);
  return one;
}

class LeftPadding : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Cases, LeftPadding,
    ::testing::Values(
        Case{"Causal", true, false, false, "same", 0, {}, false},
        Case{"CausalStateLengths", true, true, true, "same", 1, {}, false},
        Case{"CausalSeparate", true, false, false, "separate", 1, {}, false},
        Case{"CausalLogScale", true, true, false, "same", 0, {}, true},
        Case{"Gated", true, false, true, "none", 0, Rule::gated, false},
        Case{"GatedDelta", true, true, true, "none", 0, Rule::gated_delta, false},
        Case{"Full", false, false, false, "same", 0, {}, false},
        Case{"FullStateLengths", false, true, true, "same", 0, {}, false}),
    [](const auto& info) { return info.param.name; });

TEST_P(LeftPadding, EqualsEachSequenceAlone) {
  const Case& c = GetParam();
  const Problem p = padded(c);
  const Outcome got = testing::run(linear_attention_stateful, p);
  for (int64_t b = 0; b < 4; ++b) {
    const Span at = real_rows(c, b);
    const Outcome want = testing::run(linear_attention_stateful, alone(p, c, b));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(got[i].name + " of sequence " + std::to_string(b));
      if (got[i].name == "ddecay") continue;  // a sum over sequences: below
      const at::Tensor row = got[i].value.narrow(0, b, 1);
      const bool state = row.size(2) != kRoom;
      const at::Tensor real = state ? row : row.slice(2, at.begin, at.end);
      const bool gradient = got[i].name[0] == 'd';
      EXPECT_LE(testing::distance(real, want[i].value),
                gradient ? 1e-12 * testing::largest(want[i].value) + 1e-13 : 0);
      if (state) continue;
      EXPECT_FALSE(row.slice(2, 0, at.begin).ne(0).any().item<bool>());
      EXPECT_FALSE(row.slice(2, at.end).ne(0).any().item<bool>());
    }
  }
}

TEST_P(LeftPadding, SumsTheGradientOfTheDecayOverSequences) {
  const Case& c = GetParam();
  const Problem p = padded(c);
  for (const auto& result : testing::run(linear_attention_stateful, p)) {
    if (result.name != "ddecay") continue;
    at::Tensor sum = at::zeros_like(result.value);
    for (int64_t b = 0; b < 4; ++b)
      for (const auto& one : testing::run(linear_attention_stateful, alone(p, c, b)))
        if (one.name == "ddecay") sum += one.value;
    EXPECT_LE(testing::distance(result.value, sum), 1e-12 * testing::largest(sum));
  }
}

// What lies in the padding may be anything.
TEST_P(LeftPadding, NeverReadsThePadding) {
  const Case& c = GetParam();
  Problem p = padded(c);
  const Outcome clean = testing::run(linear_attention_stateful, p);
  LinearOptions& o = p.options;
  for (at::Tensor* x : {&p.q, &p.k, &p.v, &p.grad_out, &o.q_norm, &o.k_norm,
                        &o.log_scale, &o.log_decay, &o.write_strength}) {
    if (!x->defined()) continue;
    *x = x->clone();
    for (int64_t b = 0; b < 4; ++b) {
      const Span at = real_rows(c, b);
      (*x)[b].slice(1, 0, at.begin).fill_(std::numeric_limits<double>::quiet_NaN());
      (*x)[b].slice(1, at.end).fill_(std::numeric_limits<double>::quiet_NaN());
    }
  }
  testing::expect_same_bits(testing::run(linear_attention_stateful, p), clean);
}

TEST(LeftPaddingErrors, RefusesPackedSequencesAndRowsThatAreNotThere) {
  const auto refusal = [](const LinearOptions& options) -> std::string {
    const at::Tensor x = at::zeros({1, 1, 5, 2});
    try {
      linear_attention(x, x, x, options);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "nothing was refused";
  };
  LinearOptions options;
  options.causal = true;
  options.starts = numbers({2});
  EXPECT_EQ(refusal(options), "nothing was refused");
  options.cu_seqlens = numbers({0, 5});
  EXPECT_EQ(refusal(options),
            "linear_attention: expected starts or lengths (padded) or cu_seqlens "
            "(packed), got both");
  options.cu_seqlens = at::Tensor();
  options.starts = numbers({6});
  EXPECT_EQ(refusal(options), "linear_attention: expected starts from 0 to 5, got 6");
}

}  // namespace
}  // namespace lagwise::ops
