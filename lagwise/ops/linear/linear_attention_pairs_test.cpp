// Linear attention on cases in which every two values of every two axes (sizes,
// layouts, options) meet at least once, each in f32 and in f64: outputs, state
// and every gradient against the definition in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "lagwise/ops/linear/linear_layout.h"
#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/testing/all_pairs.h"
#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_problem.h"
#include "lagwise/ops/testing/linear_reference.h"
#include "lagwise/ops/testing/linear_rounding.h"
#include "lagwise/ops/testing/pairs_runner.h"

namespace lagwise::ops {
namespace {

using lagwise::testing::Choice;
using lagwise::testing::Pair;
using testing::Layout;
using testing::Outcome;
using testing::Problem;

// The axes, in the order of a Choice.
enum Axis { kN, kD, kE, kLayout, kDecay, kDenominator, kVisible, kState, kMap, kEps };
constexpr int64_t kLengths[] = {0, 1, 2, 31, 32, 33, 300, 1000};
constexpr int64_t kWidths[] = {1, 7, 16, 64, 80, 191};
constexpr const char* kDecays[] = {"nodecay", "head", "channel"};
constexpr const char* kDenominators[] = {"same", "separate", "none"};
constexpr const char* kMaps[] = {"none", "elu1", "relu:offset=0.01"};
constexpr const char* kEpsModes[] = {"add", "clamp"};

const std::vector<int> kSizes = {8, 6, 6, 6, 3, 3, 2, 2, 3, 2};

// Decay means "per step since then": there is no then in full attention.
bool is_legal(const Pair& pair) {
  return !(pair.first == kDecay && pair.first_value > 0 && pair.second == kVisible &&
           pair.second_value == 1);
}

std::vector<Choice> cases() { return lagwise::testing::all_pairs(kSizes, is_legal); }

size_t at(const Choice& choice, Axis axis) {
  return static_cast<size_t>(choice[static_cast<size_t>(axis)]);
}

bool is_causal(const Choice& c) { return at(c, kVisible) == 0; }

// A clamp that catches about half the rows, in the middle of the widest gap
// between denominators so that rounding cannot move a row across it.
double clamp_between_rows(const Problem& p) {
  LinearOptions bare = p.options;
  const bool separate = bare.denominator == "separate";
  bare.denominator = "none";
  const at::Tensor& q = separate ? p.options.q_norm : p.q;
  const at::Tensor& k = separate ? p.options.k_norm : p.k;
  const at::Tensor ones = p.v.narrow(3, 0, 1) * 0 + 1;
  const at::Tensor s = p.from.z.defined() ? p.from.z.unsqueeze(-1) : at::Tensor();
  at::Tensor raw = reference::linear_attention(q, k, ones, {s, {}}, bare).out;
  raw = std::get<0>(raw.reshape({-1}).sort()).contiguous();
  const int64_t rows = raw.numel();
  if (rows < 2) return 0.5;
  const double* den = raw.data_ptr<double>();
  int64_t best = rows / 4;
  for (int64_t i = best; i + 1 < rows && i <= 3 * rows / 4; ++i) {
    if (den[i + 1] - den[i] > den[best + 1] - den[best]) best = i;
  }
  return std::max(0.5 * (den[best] + den[best + 1]), 1e-3);
}

Problem problem_of(const Choice& c) {
  testing::Shape shape;
  shape.n = shape.m = kLengths[at(c, kN)];
  if (!is_causal(c)) shape.m = shape.n * 2 / 3 + 5;
  shape.d = kWidths[at(c, kD)];
  shape.e = kWidths[at(c, kE)];
  if (shape.n >= 300) shape.batch = 1, shape.heads = 2;
  LinearOptions options;
  options.causal = is_causal(c);
  options.feature_map = kMaps[at(c, kMap)];
  options.denominator = kDenominators[at(c, kDenominator)];
  options.eps_mode = kEpsModes[at(c, kEps)];
  options.eps = 0.1;
  Problem p = testing::random_problem(shape, options, static_cast<int>(at(c, kDecay)),
                                      at(c, kState) == 1);
  p = testing::lay_out(p, static_cast<Layout>(at(c, kLayout)));
  if (options.eps_mode == "clamp" && options.denominator != "none") {
    p.options.eps = clamp_between_rows(p);
  }
  return p;
}

std::string name_of(const ::testing::TestParamInfo<Choice>& info) {
  const Choice& c = info.param;
  char text[200];
  std::snprintf(
      text, sizeof text, "n%d_d%d_e%d_%s_%s_%s_%s_%s_%.4s_%s",
      static_cast<int>(kLengths[at(c, kN)]), static_cast<int>(kWidths[at(c, kD)]),
      static_cast<int>(kWidths[at(c, kE)]), testing::kLayoutNames[at(c, kLayout)],
      kDecays[at(c, kDecay)], kDenominators[at(c, kDenominator)],
      is_causal(c) ? "causal" : "full", at(c, kState) ? "state" : "fresh",
      kMaps[at(c, kMap)], kEpsModes[at(c, kEps)]);
  return text;
}

class LinearAttentionPairs : public ::testing::TestWithParam<Choice> {};

// The operator's results in one type. The layout comes after the cast, which
// would undo it.
Problem typed_problem(const Choice& c, const Problem& exact, at::ScalarType type) {
  return testing::lay_out(testing::cast(exact, type),
                          static_cast<Layout>(at(c, kLayout)));
}

TEST_P(LinearAttentionPairs, MatchesTheDefinitionWithEveryGradient) {
  const Problem problem = problem_of(GetParam());
  const Outcome exact = testing::run(reference::linear_attention, problem);
  testing::expect_definition(linear_attention_stateful, exact,
                             typed_problem(GetParam(), problem, at::kDouble),
                             typed_problem(GetParam(), problem, at::kFloat));
}

INSTANTIATE_TEST_SUITE_P(Every, LinearAttentionPairs, ::testing::ValuesIn(cases()),
                         name_of);

TEST(PairsOfLinearAttention, CoverEveryLegalPairOfValues) {
  const size_t pairs = testing::expect_cover(cases(), kSizes, is_legal);
  std::cout << cases().size() << " cases cover " << pairs << " pairs\n";
}

}  // namespace
}  // namespace lagwise::ops
