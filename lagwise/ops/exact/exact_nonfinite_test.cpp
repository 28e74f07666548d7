// NaN and infinity in exact attention: what goes in bad comes out bad, as of torch's
// own softmax, and only in the rows that see it.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "lagwise/ops/exact_step.h"
#include "lagwise/ops/testing/exact_problem.h"
#include "lagwise/ops/testing/exact_reference.h"

namespace lagwise::ops {
namespace {

using testing::ExactProblem;
using testing::ExactShape;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// NaN of two kinds: the usual one, and one with every bit set, as in blank memory.
std::vector<double> bad_numbers() {
  return {kNan, static_cast<double>(std::bit_cast<float>(0xffffffffU)), kInfinity,
          -kInfinity};
}

// The same rows NaN, the others equal.
void expect_like(const at::Tensor& got, const at::Tensor& want, double tolerance) {
  const at::Tensor bad = want.isnan();
  EXPECT_TRUE(got.isnan().equal(bad)) << "NaN: " << got.isnan().sum().item<int64_t>()
                                      << " numbers, not " << bad.sum().item<int64_t>();
  const auto finite = [&](const at::Tensor& x) { return x.masked_fill(bad, 0); };
  EXPECT_LE(testing::distance(finite(got), finite(want)), tolerance);
}

struct Spoilt {
  const char* what;  // q, k or v
  int64_t row;
  bool whole;  // or its first number alone
  double value;
};

ExactProblem spoil(ExactProblem p, const Spoilt& s) {
  at::Tensor& x = s.what[0] == 'q' ? p.q : s.what[0] == 'k' ? p.k : p.v;
  x = x.clone();
  const at::Tensor row = x.select(2, s.row);
  (s.whole ? row : row.narrow(2, 0, 1)).fill_(s.value);
  return p;
}

template <class Fn>
void for_each_case(const Fn& fn) {
  for (const int64_t n : {1, 2, 5, 64, 70, 300})
    for (const bool causal : {false, true})
      for (const int64_t tables : {0, 2})
        for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
          SCOPED_TRACE("N " + std::to_string(n) + (causal ? ", causal" : ", full") +
                       ", tables of " + std::to_string(tables) + ", " +
                       c10::toString(type));
          ExactOptions options;
          options.causal = causal;
          const ExactShape shape{1, 2, n, n, 4, 3, tables, tables, tables};
          fn(testing::random_exact(shape, options), type);
        }
}

TEST(ExactNonFinite, BadQueriesAndKeysSpoilWhatTheyDoInTorch) {
  for_each_case([](const ExactProblem& p, at::ScalarType type) {
    const int64_t n = p.q.size(2);
    for (const char* what : {"q", "k"})
      for (const double value : bad_numbers())
        for (const bool whole : {false, true})
          for (const int64_t row : {int64_t{0}, std::min<int64_t>(2, n - 1), n - 1}) {
            SCOPED_TRACE(std::string(what) + " of row " + std::to_string(row) + " is " +
                         std::to_string(value) + (whole ? "" : " in its first number"));
            const ExactProblem bad = spoil(p, {what, row, whole, value});
            const at::Tensor want =
                reference::exact_attention(bad.q, bad.k, bad.v, bad.options);
            const ExactProblem ours = testing::cast(bad, type);
            expect_like(exact_attention(ours.q, ours.k, ours.v, ours.options), want,
                        type == at::kDouble ? 1e-12 : 1e-5);
          }
  });
}

TEST(ExactNonFinite, BadValuesReachTheRowsThatSeeThem) {
  for_each_case([](const ExactProblem& p64, at::ScalarType type) {
    const ExactProblem p = testing::cast(p64, type);
    const int64_t n = p.q.size(2);
    const at::Tensor calm = exact_attention(p.q, p.k, p.v, p.options);
    for (const double value : bad_numbers())
      for (const int64_t row : {int64_t{0}, std::min<int64_t>(2, n - 1), n - 1}) {
        const ExactProblem bad = spoil(p, {"v", row, true, value});
        const at::Tensor out = exact_attention(bad.q, bad.k, bad.v, bad.options);
        const int64_t from = p.options.causal ? row : 0;
        EXPECT_TRUE(out.slice(2, 0, from).equal(calm.slice(2, 0, from)));
        EXPECT_FALSE(out.slice(2, from).isfinite().any().item<bool>());
      }
  });
}

TEST(ExactNonFinite, GradientsOfABadRowAreBad) {
  for_each_case([](const ExactProblem& p64, at::ScalarType type) {
    const int64_t row = std::min<int64_t>(2, p64.q.size(2) - 1);
    const testing::Outcome got = testing::run(
        exact_attention, testing::cast(spoil(p64, {"q", row, true, kNan}), type));
    for (const size_t i : {1, 2, 3})  // dq, dk, dv: row sees key `row`
      EXPECT_TRUE(got[i].value.select(2, row).isnan().all().item<bool>())
          << got[i].name;
  });
}

// A bias of -inf hides a key. A row with nothing else gives zeros, but not if what it
// sees is bad.
TEST(ExactNonFinite, ABiasHidesKeysButNotNan) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    ExactProblem p =
        testing::cast(testing::random_exact({1, 2, 70, 70, 4, 3, 2, 0, 0}, {}), type);
    p.options.lag_bias = at::full_like(p.options.lag_bias, -kInfinity);
    const auto attend = [&](const ExactProblem& x) {
      return exact_attention(x.q, x.k, x.v, x.options);
    };
    EXPECT_EQ(testing::largest(attend(p)), 0.0);
    const at::Tensor out = attend(spoil(p, {"q", 30, true, kNan}));
    EXPECT_TRUE(out.select(2, 30).isnan().all().item<bool>());
    EXPECT_EQ(testing::largest(out.slice(2, 31)), 0.0);
  }
}

TEST(ExactNonFinite, AStepDoesTheSame) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const int64_t m : {1, 5, 300, 5000})
      for (const char* what : {"q", "k"})
        for (const double value : bad_numbers())
          for (const bool whole : {false, true})
            for (const bool hidden : {false, true}) {
              SCOPED_TRACE("M " + std::to_string(m) + ", " + what + " is " +
                           std::to_string(value) + (hidden ? ", others hidden" : ""));
              const ExactProblem p = testing::random_exact({1, 2, 1, m, 4, 3}, {});
              const int64_t key = std::min<int64_t>(2, m - 1);
              ExactProblem bad =
                  spoil(p, {what, what[0] == 'q' ? 0 : key, whole, value});
              bad.options.lag_bias = at::zeros({1, m}, at::kDouble);
              // Entry (0 - j) + (M - 1) serves key j.
              if (hidden)
                bad.options.lag_bias.narrow(1, 0, m - 1 - key).fill_(-kInfinity);
              const at::Tensor want =
                  reference::exact_attention(bad.q, bad.k, bad.v, bad.options);
              const ExactProblem x = testing::cast(bad, type);
              ExactStepOptions options;
              options.lag_bias = x.options.lag_bias;
              expect_like(exact_attention_step(x.q.select(2, 0), x.k, x.v, options),
                          want.select(2, 0), type == at::kDouble ? 1e-12 : 1e-5);
            }
}

}  // namespace
}  // namespace lagwise::ops
