// Exact attention on cases in which every two values of every two axes (sizes,
// tables, layouts, what is visible) meet at least once, each in f32 and in f64: the
// output and every gradient against the definition in double.

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "lagwise/ops/all_pairs.h"
#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/exact_problem.h"
#include "lagwise/ops/exact_reference.h"
#include "lagwise/ops/linear_layout.h"

namespace lagwise::ops {
namespace {

using lagwise::testing::Choice;
using lagwise::testing::Pair;
using testing::ExactProblem;
using testing::Outcome;

// The axes, in the order of a Choice.
enum Axis { kN, kM, kD, kE, kLayout, kBias, kKeys, kValues, kSight, kCut };
constexpr int64_t kLengths[] = {0, 1, 2, 63, 64, 65, 300, 1000};
constexpr int64_t kWidths[] = {1, 7, 16, 64, 80};
enum Layout { kContiguous, kRowsFirst, kPadded, kInnerStep, kColumnsFirst, kExpanded };
enum Seen { kFull, kCausal, kShifted, kWindow, kFullWindow };
enum Cut { kPlain, kLengthsOf, kKeyLengths, kBothLengths, kPacked, kKeysPacked };
const std::vector<int> kSizes = {8, 8, 5, 5, 6, 3, 3, 3, 5, 6};

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

// f32: at most twice the error of plain torch in f32, or four units in the last place
// of the tensor's largest number, where torch happens to be exact.
void expect_no_worse_than_torch(const Outcome& ours, const Outcome& torch,
                                const Outcome& exact) {
  for (size_t i = 0; i < exact.size(); ++i) {
    const at::Tensor& have = ours[i].value;
    const at::Tensor want = testing::or_zeros(exact[i].value, have);
    const double torch_error =
        testing::distance(testing::or_zeros(torch[i].value, have), want);
    const double floor = 4 * 1.2e-7 * testing::largest(want) + 1e-7;
    EXPECT_LE(testing::distance(have, want), 2 * torch_error + floor)
        << ours[i].name << ": plain torch errs by " << torch_error
        << ", largest number " << testing::largest(want);
  }
}

Outcome run_operator(const ExactProblem& p) {
  const Outcome ours = testing::run(exact_attention, p);
  for (const testing::Result& x : ours) {
    EXPECT_TRUE(x.value.defined()) << x.name << " got no gradient";
    EXPECT_EQ(x.value.scalar_type(), p.q.scalar_type()) << x.name;
  }
  return ours;
}

class ExactAttentionPairs : public ::testing::TestWithParam<Choice> {};

TEST_P(ExactAttentionPairs, MatchesTheDefinitionWithEveryGradient) {
  const int layout = at(GetParam(), kLayout);
  // The expanded layout changes numbers: it comes before the reference as well.
  const ExactProblem problem = layout == kExpanded
                                   ? lay_out(problem_of(GetParam()), layout)
                                   : problem_of(GetParam());
  const Outcome exact = testing::run(reference::exact_attention, problem);
  {
    SCOPED_TRACE("f64");
    testing::expect_close(run_operator(lay_out(problem, layout)), exact, 1e-10);
  }
  SCOPED_TRACE("f32");
  const ExactProblem p = lay_out(testing::cast(problem, at::kFloat), layout);
  expect_no_worse_than_torch(run_operator(p),
                             testing::run(reference::exact_attention, p), exact);
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
         kSightNames[at(c, kSight)] + "_" + kCutNames[at(c, kCut)];
}

INSTANTIATE_TEST_SUITE_P(Every, ExactAttentionPairs, ::testing::ValuesIn(cases()),
                         name_of);

TEST(PairsOfExactAttention, CoverEveryLegalPairOfValues) {
  const auto wanted = lagwise::testing::legal_pairs(kSizes, is_legal);
  auto missing = wanted;
  for (const Choice& c : cases())
    for (const Pair& pair : lagwise::testing::pairs_of(c)) {
      EXPECT_TRUE(is_legal(pair));
      missing.erase(pair);
    }
  EXPECT_TRUE(missing.empty());
  std::cout << cases().size() << " cases cover " << wanted.size() << " pairs\n";
}

}  // namespace
}  // namespace lagwise::ops
