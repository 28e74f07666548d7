// Linear attention with gates and writing strengths on cases in which every two values
// of every two axes meet at least once, each in f64 and in f32: outputs, state and every
// gradient against the definition token by token.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "lagwise/ops/linear/linear_layout.h"
#include "lagwise/ops/testing/memory_problem.h"
#include "lagwise/ops/testing/pairs_runner.h"

namespace lagwise::ops {
namespace {

using lagwise::testing::Choice;
using lagwise::testing::Pair;
using testing::Layout;
using testing::Outcome;
using testing::Problem;
using testing::Rule;

// The axes, in the order of a Choice.
enum Axis { kRows, kD, kE, kMemory, kLaid, kFades, kDivides, kFrom, kFeatures, kAt };
constexpr int64_t kRowCounts[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 150};
constexpr int64_t kSomeWidths[] = {1, 7, 16, 64, 80};
constexpr const char* kFadeNames[] = {"nodecay", "head", "channel"};
constexpr const char* kDivideNames[] = {"none", "same", "separate"};
constexpr const char* kFeatureMaps[] = {"none", "elu1", "relu:offset=0.01"};
constexpr const char* kBorders[] = {"open", "border"};

const std::vector<int> kAxisSizes = {10, 5, 5, 3, 6, 3, 3, 2, 3, 2};

// The delta rule has no denominator and no decay per channel, and only a gate can hold a
// border.
bool can_meet(const Pair& pair) {
  const bool delta = pair.first == kMemory && pair.first_value > 0;
  if (delta && pair.second == kFades) return pair.second_value < 2;
  if (delta && pair.second == kDivides) return pair.second_value == 0;
  return !(pair.first == kMemory && pair.first_value == 1 && pair.second == kAt &&
           pair.second_value == 1);
}

std::vector<Choice> memory_cases() {
  return lagwise::testing::all_pairs(kAxisSizes, can_meet);
}

size_t chosen(const Choice& choice, Axis axis) {
  return static_cast<size_t>(choice[static_cast<size_t>(axis)]);
}

Problem memory_problem(const Choice& c) {
  testing::Shape shape;
  shape.n = shape.m = kRowCounts[chosen(c, kRows)];
  shape.d = kSomeWidths[chosen(c, kD)];
  shape.e = kSomeWidths[chosen(c, kE)];
  if (shape.n >= 100) shape.batch = 1, shape.heads = 5;
  LinearOptions options;
  options.causal = true;
  options.feature_map = kFeatureMaps[chosen(c, kFeatures)];
  options.denominator = kDivideNames[chosen(c, kDivides)];
  options.eps = 0.1;
  Problem p = testing::random_problem(
      shape, options, static_cast<int>(chosen(c, kFades)), chosen(c, kFrom) == 1);
  p = testing::lay_out(p, static_cast<Layout>(chosen(c, kLaid)));
  p = testing::with_memory(p, static_cast<Rule>(chosen(c, kMemory)));
  if (chosen(c, kAt) == 1 && shape.n > 0) p = testing::with_border(p, shape.n / 2);
  return p;
}

std::string case_name(const ::testing::TestParamInfo<Choice>& info) {
  const Choice& c = info.param;
  char text[200];
  std::snprintf(text, sizeof text, "n%d_d%d_e%d_%s_%s_%s_%s_%s_%.4s_%s",
                static_cast<int>(kRowCounts[chosen(c, kRows)]),
                static_cast<int>(kSomeWidths[chosen(c, kD)]),
                static_cast<int>(kSomeWidths[chosen(c, kE)]),
                testing::kRuleNames[chosen(c, kMemory)],
                testing::kLayoutNames[chosen(c, kLaid)], kFadeNames[chosen(c, kFades)],
                kDivideNames[chosen(c, kDivides)], chosen(c, kFrom) ? "state" : "fresh",
                kFeatureMaps[chosen(c, kFeatures)], kBorders[chosen(c, kAt)]);
  return text;
}

class LinearMemoryPairs : public ::testing::TestWithParam<Choice> {};

TEST_P(LinearMemoryPairs, MatchesTheDefinitionWithEveryGradient) {
  const Problem problem = memory_problem(GetParam());
  const auto layout = static_cast<Layout>(chosen(GetParam(), kLaid));
  const Outcome exact = testing::run(reference::by_token, problem);
  {
    SCOPED_TRACE("f64");
    const Outcome ours = testing::run_whole(linear_attention_stateful,
                                            testing::lay_out(problem, layout));
    testing::expect_close(ours, exact, 1e-10);
  }
  SCOPED_TRACE("f32");
  const Problem f32 = testing::cast(problem, at::kFloat);
  testing::expect_twice_torch(
      testing::run_whole(linear_attention_stateful, testing::lay_out(f32, layout)),
      testing::run(reference::by_token, f32), exact, problem);
}

INSTANTIATE_TEST_SUITE_P(Every, LinearMemoryPairs, ::testing::ValuesIn(memory_cases()),
                         case_name);

TEST(PairsOfLinearMemory, CoverEveryLegalPairOfValues) {
  const size_t pairs = testing::expect_cover(memory_cases(), kAxisSizes, can_meet);
  std::cout << memory_cases().size() << " cases cover " << pairs << " pairs\n";
}

}  // namespace
}  // namespace lagwise::ops
