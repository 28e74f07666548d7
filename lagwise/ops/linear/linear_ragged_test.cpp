// Ragged batches: a padded batch, the same sequences packed, and each on its own are
// the same attention, forwards and backwards.

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>

#include "lagwise/ops/testing/linear_outcome.h"

namespace lagwise::ops {
namespace {

using testing::Outcome;
using testing::Problem;

at::Tensor numbers(const std::vector<int64_t>& x) {
  return at::tensor(at::ArrayRef<int64_t>(x), at::kLong);
}

at::Tensor cuts(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> at = {0};
  for (const int64_t length : lengths) at.push_back(at.back() + length);
  return numbers(at);
}

// A batch of sequences: 40 rows of room, of which these are real.
const std::vector<int64_t> kQueries = {17, 0, 40, 1}, kKeys = {5, 33, 0, 21};
constexpr int64_t kRoom = 40;

struct Case {
  const char* name;
  bool causal;
  const char* denominator;
  const char* map;
  int decay_axes;
  bool state;
};

Problem padded_problem(const Case& c) {
  LinearOptions options;
  options.causal = c.causal;
  options.denominator = c.denominator;
  options.feature_map = c.map;
  Problem p =
      testing::random_problem({.batch = 4, .n = kRoom, .m = kRoom, .d = 9, .e = 6},
                              options, c.decay_axes, c.state);
  p.options.lengths = numbers(kQueries);
  if (!c.causal) p.options.key_lengths = numbers(kKeys);
  return p;
}

const std::vector<int64_t>& keys_of(const Case& c) {
  return c.causal ? kQueries : kKeys;
}

/// The first rows of batch row b.
at::Tensor part(const at::Tensor& x, int64_t b, const std::vector<int64_t>& lengths) {
  return x.narrow(0, b, 1).slice(2, 0, lengths[static_cast<size_t>(b)]);
}

/// Each sequence on its own.
Problem alone(const Problem& p, const Case& c, int64_t b) {
  Problem one = p;
  const auto keys = keys_of(c);
  one.options.lengths = one.options.key_lengths = at::Tensor();
  one.q = part(p.q, b, kQueries), one.k = part(p.k, b, keys),
  one.v = part(p.v, b, keys);
  if (p.options.q_norm.defined()) {
    one.options.q_norm = part(p.options.q_norm, b, kQueries);
    one.options.k_norm = part(p.options.k_norm, b, keys);
  }
  one.grad_out = part(p.grad_out, b, kQueries);
  for (at::Tensor* x : {&one.from.s, &one.from.z, &one.grad_s, &one.grad_z})
    if (x->defined()) *x = x->narrow(0, b, 1);
  return one;
}

/// All sequences one after the other in one batch row; states keep their order.
Problem packed(const Problem& p, const Case& c) {
  Problem all = p;
  const auto join = [&](const at::Tensor& x, const std::vector<int64_t>& lengths) {
    if (!x.defined()) return x;
    std::vector<at::Tensor> parts;
    for (int64_t b = 0; b < 4; ++b) parts.push_back(part(x, b, lengths));
    return at::cat(parts, 2);
  };
  const auto keys = keys_of(c);
  all.q = join(p.q, kQueries), all.k = join(p.k, keys), all.v = join(p.v, keys);
  all.options.q_norm = join(p.options.q_norm, kQueries);
  all.options.k_norm = join(p.options.k_norm, keys);
  all.grad_out = join(p.grad_out, kQueries);
  all.options.lengths = all.options.key_lengths = at::Tensor();
  all.options.cu_seqlens = cuts(kQueries);
  if (!c.causal) all.options.key_cu_seqlens = cuts(keys);
  return all;
}

/// Puts what single sequences gave where a padded batch has it, zeros elsewhere.
at::Tensor assemble(const std::vector<Outcome>& each, size_t result,
                    const at::Tensor& like) {
  at::Tensor whole = at::zeros(like.sizes(), like.options());
  const std::string& name = each[0][result].name;
  if (name == "ddecay") {
    for (const Outcome& one : each) whole += one[result].value;
    return whole;
  }
  const bool rows = name != "s" && name != "z" && name != "ds" && name != "dz";
  for (int64_t b = 0; b < 4; ++b) {
    const at::Tensor& x = each[static_cast<size_t>(b)][result].value;
    at::Tensor to = whole.narrow(0, b, 1);
    if (rows) to = to.slice(2, 0, x.size(2));
    to.copy_(x);
  }
  return whole;
}

class Ragged : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Cases, Ragged,
    ::testing::Values(Case{"Causal", true, "same", "elu1", 0, false},
                      Case{"CausalDecayState", true, "same", "none", 1, true},
                      Case{"CausalChannels", true, "none", "none", 2, true},
                      Case{"CausalSeparate", true, "separate", "relu", 1, false},
                      Case{"Full", false, "same", "elu1", 0, false},
                      Case{"FullState", false, "same", "none", 0, true},
                      Case{"FullNone", false, "none", "none", 0, true},
                      Case{"FullSeparate", false, "separate", "elu1", 0, true}),
    [](const auto& info) { return info.param.name; });

TEST_P(Ragged, PaddedEqualsOneByOne) {
  const Problem p = padded_problem(GetParam());
  const Outcome got = testing::run(linear_attention_stateful, p);
  std::vector<Outcome> each;
  for (int64_t b = 0; b < 4; ++b)
    each.push_back(testing::run(linear_attention_stateful, alone(p, GetParam(), b)));
  Outcome expected = got;
  for (size_t i = 0; i < got.size(); ++i)
    expected[i].value = assemble(each, i, got[i].value);
  testing::expect_close(got, expected, 1e-12);
}

TEST_P(Ragged, PackedEqualsPadded) {
  const Problem p = padded_problem(GetParam()), q = packed(p, GetParam());
  const Outcome a = testing::run(linear_attention_stateful, p);
  const Outcome b = testing::run(linear_attention_stateful, q);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    at::Tensor want = a[i].value;
    const std::string& name = a[i].name;
    const bool of_keys = name == "dk" || name == "dv" || name == "dk_norm";
    if (of_keys || name == "out" || name == "dq" || name == "dq_norm") {
      const auto& lengths = of_keys ? keys_of(GetParam()) : kQueries;
      std::vector<at::Tensor> parts;
      for (int64_t j = 0; j < 4; ++j) parts.push_back(part(want, j, lengths));
      want = at::cat(parts, 2);
    }
    EXPECT_LE(testing::distance(b[i].value, want),
              1e-12 * testing::largest(want) + 1e-13)
        << name;
  }
}

// What lies in the padding may be anything.
TEST_P(Ragged, NeverReadsThePadding) {
  Problem p = padded_problem(GetParam());
  const Outcome clean = testing::run(linear_attention_stateful, p);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto spoil = [&](at::Tensor& x, const std::vector<int64_t>& lengths) {
    if (!x.defined()) return;
    x = x.clone();
    for (int64_t b = 0; b < 4; ++b)
      x[b].slice(1, lengths[static_cast<size_t>(b)]).fill_(nan);
  };
  const auto& keys = keys_of(GetParam());
  spoil(p.q, kQueries), spoil(p.k, keys), spoil(p.v, keys), spoil(p.grad_out, kQueries);
  spoil(p.options.q_norm, kQueries), spoil(p.options.k_norm, keys);
  testing::expect_same_bits(testing::run(linear_attention_stateful, p), clean);
}

TEST(RaggedKeys, AloneLeaveEveryQueryReal) {
  Problem p = padded_problem({"", false, "same", "elu1", 0, false});
  p.options.lengths = numbers({kRoom, kRoom, kRoom, kRoom});
  const Outcome want = testing::run(linear_attention_stateful, p);
  p.options.lengths = at::Tensor();
  testing::expect_same_bits(testing::run(linear_attention_stateful, p), want);
}

std::string refusal(const Problem& p) {
  try {
    linear_attention_stateful(p.q, p.k, p.v, p.from, p.options);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was refused";
}

void expect_refused(const Problem& p, const std::string& part) {
  const std::string said = refusal(p);
  EXPECT_EQ(said.rfind("linear_attention: expected", 0), 0U) << said;
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(RaggedErrors, RefusesLengthsThatDoNotFit) {
  const Case causal{"", true, "same", "elu1", 0, false};
  Problem p = padded_problem(causal);
  p.options.lengths = numbers({1, 2, 3});
  expect_refused(p, "lengths [B] = [4], got [3]");
  p.options.lengths = numbers({1, 2, 3, kRoom + 1});
  expect_refused(p, "lengths from 0 to 40, got 41");
  p.options.lengths = numbers({1, 2, 3, 4}).to(at::kFloat);
  expect_refused(p, "lengths of whole numbers, Long or Int, got Float");
  p.options.lengths = numbers(kQueries);
  p.options.key_lengths = numbers(kKeys);
  expect_refused(p, "no key_lengths in causal attention");
  p.options.lengths = at::Tensor();
  expect_refused(p, "no key_lengths in causal attention");
  p.options.lengths = numbers(kQueries);
  p.options.key_lengths = at::Tensor();
  p.options.cu_seqlens = numbers({0, 40});
  expect_refused(p, "got both");
}

TEST(RaggedErrors, RefusesCutsThatDoNotFit) {
  const Case causal{"", true, "same", "elu1", 0, false};
  Problem p = packed(padded_problem(causal), causal);
  p.options.cu_seqlens = numbers({0, 17, 16, 58});
  expect_refused(p, "cu_seqlens that never falls, got 17 before 16");
  p.options.cu_seqlens = numbers({0, 17, 57});
  expect_refused(p, "cu_seqlens from 0 to 58");
  Problem two = padded_problem(causal);
  two.options.lengths = at::Tensor();
  two.options.cu_seqlens = numbers({0, 40});
  expect_refused(two, "B = 1 with cu_seqlens, got 4");
}

}  // namespace
}  // namespace lagwise::ops
