// Exact attention on cases in which every two values of every two axes (sizes,
// tables, layouts, what is visible) meet at least once, each in f32 and in f64: the
// output and every gradient against the definition in double.

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/linear/linear_layout.h"
#include "lagwise/ops/testing/all_pairs.h"
#include "lagwise/ops/testing/exact_problem.h"
#include "lagwise/ops/testing/exact_reference.h"
#include "lagwise/ops/testing/exact_rounding.h"
#include "lagwise/ops/testing/pairs_runner.h"

namespace lagwise::ops {
namespace {

using lagwise::testing::Choice;
using lagwise::testing::Pair;
using testing::ExactProblem;
using testing::Outcome;

// The axes, in the order of a Choice.
enum Axis { kN, kM, kD, kE, kLayout, kBias, kKeys, kValues, kSight, kCut, kKeyBias };
constexpr int64_t kLengths[] = {0, 1, 2, 63, 64, 65, 300, 1000};
constexpr int64_t kWidths[] = {1, 7, 16, 64, 80};
enum Layout { kContiguous, kRowsFirst, kPadded, kInnerStep, kColumnsFirst, kExpanded };
enum Seen { kFull, kCausal, kShifted, kWindow, kFullWindow };
enum Cut { kPlain, kLengthsOf, kKeyLengths, kBothLengths, kPacked, kKeysPacked };
const std::vector<int> kSizes = {8, 8, 5, 5, 6, 3, 3, 3, 5, 6, 2};

bool is_legal(const Pair&) { return true; }

std::vector<Choice> cases() { return lagwise::testing::all_pairs(kSizes, is_legal); }

int at(const Choice& c, Axis axis) { return c[static_cast<size_t>(axis)]; }

bool is_packed(int cut) { return cut == kPacked || cut == kKeysPacked; }
// Where keys are cut as the queries are, there are as many.
bool is_square(int cut) { return cut == kLengthsOf || cut == kPacked; }

void set_sight(ExactOptions& options, int seen, int64_t n, int64_t m) {
  options.causal = seen == kCausal || seen == kShifted || seen == kWindow;
  if (seen == kShifted) options.query_start = 11 + m / 3, options.key_start = 12;
  if (seen == kWindow) options.window = 1 + (n + m) / 7;
  if (seen == kFullWindow) options.window = 2 + (n + m) / 5;
}

void set_cut(ExactOptions& options, int cut, int64_t batch, int64_t n, int64_t m) {
  std::vector<int64_t> queries, keys;
  for (int64_t b = 0; b < batch; ++b) {
    queries.push_back(n * (2 * b + 1) / (2 * batch));
    keys.push_back(m * (2 * (batch - b) - 1) / (2 * batch));
  }
  if (cut == kLengthsOf || cut == kBothLengths)
    options.lengths = at::tensor(queries, at::kLong);
  if (cut == kKeyLengths || cut == kBothLengths)
    options.key_lengths = at::tensor(keys, at::kInt);
  // One sequence is empty, one has a single row if there is any; of one the queries
  // have no keys.
  if (is_packed(cut))
    options.cu_seqlens = at::tensor(
        std::vector<int64_t>{0, n / 3, n / 3, std::min(n / 3 + 1, n), n}, at::kInt);
  if (cut == kKeysPacked)
    options.key_cu_seqlens =
        at::tensor(std::vector<int64_t>{0, m / 2, m / 2 + m / 5, m / 2 + m / 5, m});
}

ExactProblem problem_of(const Choice& c) {
  testing::ExactShape x;
  x.n = kLengths[at(c, kN)];
  x.m = is_square(at(c, kCut)) ? x.n : kLengths[at(c, kM)];
  x.d = kWidths[at(c, kD)], x.e = kWidths[at(c, kE)];
  x.batch = is_packed(at(c, kCut)) ? 1 : 2;
  if (x.n + x.m >= 600) x.heads = 2;
  const int64_t heads[] = {0, 1, x.heads};
  x.bias = heads[at(c, kBias)], x.keys = heads[at(c, kKeys)];
  x.values = heads[at(c, kValues)];
  x.key_bias = at(c, kKeyBias) == 1;
  ExactOptions options;
  if (at(c, kKeys) == 2) options.scale = 0.6;
  set_sight(options, at(c, kSight), x.n, x.m);
  set_cut(options, at(c, kCut), x.batch, x.n, x.m);
  return testing::random_exact(x, options);
}

ExactProblem lay_out(ExactProblem p, int layout) {
  switch (layout) {
    case kRowsFirst:
      return testing::map_tensors(p, testing::rows_first);
    case kPadded:
      return testing::map_tensors(p, testing::padded);
    case kInnerStep:
      return testing::map_tensors(p, testing::inner_step);
    case kColumnsFirst:
      return testing::map_tensors(p, testing::columns_first);
    case kExpanded:  // keys and values shared by all heads; a gradient as of sum()
      for (at::Tensor* t : {&p.k, &p.v}) *t = testing::expanded(*t, 1);
      p.grad_out = testing::expanded(testing::expanded(p.grad_out, 3), 2);
      return p;
    default:
      return p;
  }
}

class ExactAttentionPairs : public ::testing::TestWithParam<Choice> {};

TEST_P(ExactAttentionPairs, MatchesTheDefinitionWithEveryGradient) {
  const int layout = at(GetParam(), kLayout);
  // The expanded layout changes numbers: it comes before the reference as well.
  const ExactProblem problem = layout == kExpanded
                                   ? lay_out(problem_of(GetParam()), layout)
                                   : problem_of(GetParam());
  const Outcome exact = testing::run(reference::exact_attention, problem);
  testing::expect_definition(exact_attention, exact, lay_out(problem, layout),
                             lay_out(testing::cast(problem, at::kFloat), layout));
}

std::string name_of(const ::testing::TestParamInfo<Choice>& info) {
  const Choice& c = info.param;
  constexpr const char* kSightNames[] = {"full", "causal", "shifted", "window",
                                         "fullwindow"};
  constexpr const char* kCutNames[] = {"plain",       "lengths", "keylengths",
                                       "bothlengths", "packed",  "keyspacked"};
  const auto number = [](int64_t x) { return std::to_string(x); };
  return "n" + number(kLengths[at(c, kN)]) + "_m" + number(kLengths[at(c, kM)]) + "_d" +
         number(kWidths[at(c, kD)]) + "_e" + number(kWidths[at(c, kE)]) + "_layout" +
         number(at(c, kLayout)) + "_tables" + number(at(c, kBias)) +
         number(at(c, kKeys)) + number(at(c, kValues)) + "_" +
         kSightNames[at(c, kSight)] + "_" + kCutNames[at(c, kCut)] +
         (at(c, kKeyBias) ? "_keybias" : "");
}

INSTANTIATE_TEST_SUITE_P(Every, ExactAttentionPairs, ::testing::ValuesIn(cases()),
                         name_of);

TEST(PairsOfExactAttention, CoverEveryLegalPairOfValues) {
  const size_t pairs = testing::expect_cover(cases(), kSizes, is_legal);
  std::cout << cases().size() << " cases cover " << pairs << " pairs\n";
}

}  // namespace
}  // namespace lagwise::ops
