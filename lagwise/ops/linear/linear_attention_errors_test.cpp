// Wrong calls of linear attention: each is refused with one line that begins
// with the operator's name and says what was expected and what came.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lagwise/ops/linear/linear_call.h"

namespace lagwise::ops {
namespace {

// The message of the c10::Error that `call` must throw.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was refused";
}

// `said` begins with the operator's name, is one line, and holds each part.
void expect_line(const std::string& said, const std::string& op,
                 const std::vector<std::string>& parts) {
  EXPECT_EQ(said.rfind(op + ": ", 0), 0U) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  for (const std::string& part : parts) {
    EXPECT_NE(said.find(part), std::string::npos)
        << "'" << part << "' is not in: " << said;
  }
}

// A correct causal call with B = 2, H = 3, N = 4, D = 5, E = 6, to be spoilt.
struct Call {
  at::Tensor q = at::ones({2, 3, 4, 5});
  at::Tensor k = at::ones({2, 3, 4, 5});
  at::Tensor v = at::ones({2, 3, 4, 6});
  LinearState from;
  LinearOptions options;
  Call() { options.causal = true; }

  std::string refused() const {
    return refusal([&] { linear_attention_stateful(q, k, v, from, options); });
  }
};

void expect_refused(const Call& call, const std::vector<std::string>& parts) {
  expect_line(call.refused(), "linear_attention", parts);
}

TEST(LinearAttentionErrors, TheCallTheseTestsSpoilIsCorrect) {
  EXPECT_EQ(Call().refused(), "nothing was refused");
}

TEST(LinearAttentionErrors, RefusesAWrongRank) {
  Call three, two, five;
  three.q = at::ones({3, 4, 5});
  expect_refused(three, {"expected q [B, H, N, D]", "got [3, 4, 5]"});
  two.k = at::ones({4, 5});
  expect_refused(two, {"expected k [B, H, M, D]", "got [4, 5]"});
  five.v = at::ones({1, 2, 3, 4, 6});
  expect_refused(five, {"expected v [B, H, M, E]", "got [1, 2, 3, 4, 6]"});
}

TEST(LinearAttentionErrors, RefusesSizesThatDoNotMatch) {
  Call width, heads, batch, values;
  width.k = at::ones({2, 3, 4, 7});
  expect_refused(width, {"expected k", "5", "got [2, 3, 4, 7]"});
  heads.k = at::ones({2, 1, 4, 5});
  expect_refused(heads, {"expected k", "got [2, 1, 4, 5]"});
  batch.v = at::ones({1, 3, 4, 6});
  expect_refused(batch, {"expected v", "got [1, 3, 4, 6]"});
  values.v = at::ones({2, 3, 9, 6});
  expect_refused(values, {"expected v", "got [2, 3, 9, 6]"});
}

TEST(LinearAttentionErrors, RefusesCausalCallsWithUnequalLengths) {
  Call call;
  call.k = at::ones({2, 3, 9, 5});
  call.v = at::ones({2, 3, 9, 6});
  expect_refused(call, {"expected", "causal", "got N = 4", "M = 9"});
}

TEST(LinearAttentionErrors, RefusesTensorsThatAreNotFloatOrDouble) {
  for (const at::ScalarType type : {at::kLong, at::kInt, at::kBool, at::kHalf}) {
    Call call;
    for (at::Tensor* t : {&call.q, &call.k, &call.v}) *t = t->to(type);
    expect_refused(call,
                   {"expected", "Float, Double or BFloat16", "got", toString(type)});
  }
}

TEST(LinearAttentionErrors, RefusesMixedTypes) {
  Call k, v, decay, state;
  k.k = k.k.to(at::kDouble);
  expect_refused(k, {"expected k", "Float", "got Double"});
  v.v = v.v.to(at::kLong);
  expect_refused(v, {"expected v", "Float", "got Long"});
  decay.options.decay = at::zeros({3}, at::kDouble);
  expect_refused(decay, {"expected decay", "Float", "got Double"});
  state.from.s = at::zeros({2, 3, 5, 6}, at::kDouble);
  expect_refused(state, {"expected s", "Float", "got Double"});
}

TEST(LinearAttentionErrors, RefusesAnUnknownFeatureMap) {
  Call call;
  call.options.feature_map = "softmax";
  expect_refused(call, {"expected feature_map", "none", "elu1", "relu", "'softmax'"});
}

TEST(LinearAttentionErrors, RefusesAnUnknownOptionOfAFeatureMap) {
  Call unknown, not_a_number, nothing_to_set;
  unknown.options.feature_map = "relu:ofset=1";
  expect_refused(unknown, {"ofset", "offset"});
  not_a_number.options.feature_map = "relu:offset=much";
  expect_refused(not_a_number, {"expected", "offset", "much"});
  nothing_to_set.options.feature_map = "elu1:offset=1";
  expect_refused(nothing_to_set, {"offset"});
}

TEST(LinearAttentionErrors, RefusesAnOffsetBelowZero) {
  Call call;
  call.options.feature_map = "relu:offset=-1";
  expect_refused(call, {"expected offset >= 0", "got -1"});
}

// Asked of the checks themselves: the dispatcher would look for a kernel of the device.
TEST(LinearAttentionErrors, RefusesTensorsOfAnotherDevice) {
  Call k, decay;
  k.k = k.k.to(at::kMeta);
  decay.options.decay = at::zeros({3}, at::kFloat).to(at::kMeta);
  const auto said = [](const Call& x) {
    return refusal(
        [&] { check_linear("linear_attention", x.q, x.k, x.v, x.from, x.options); });
  };
  expect_line(said(k), "linear_attention",
              {"expected k on the same device as q", "cpu", "got meta"});
  expect_line(said(decay), "linear_attention",
              {"expected decay on the same device", "got meta"});
}

TEST(LinearAttentionErrors, RefusesADecayThatGrows) {
  for (const double wrong : {0.9, std::nan("")}) {
    Call call;
    call.options.causal = true;
    call.options.decay = at::zeros({3}, at::kFloat);
    call.options.decay[1].fill_(wrong);
    expect_refused(call, {"expected decay <= 0", "logarithm", "got"});
  }
}

TEST(LinearAttentionErrors, RefusesHalfAState) {
  Call s, z;
  s.from.s = at::zeros({2, 3, 5, 6});
  expect_refused(s, {"expected s and z", "got only s"});
  z.from.z = at::zeros({2, 3, 5});
  expect_refused(z, {"expected s and z", "got only z"});
}

TEST(LinearAttentionErrors, RefusesAnUnknownDenominator) {
  Call call;
  call.options.denominator = "sum";
  expect_refused(call, {"expected denominator", "same", "separate", "none", "'sum'"});
}

TEST(LinearAttentionErrors, RefusesAnUnknownEpsMode) {
  Call call;
  call.options.eps_mode = "max";
  expect_refused(call, {"expected eps_mode", "add", "clamp", "'max'"});
}

TEST(LinearAttentionErrors, RefusesANegativeEps) {
  Call call;
  call.options.eps = -0.5;
  expect_refused(call, {"expected eps", "got -0.5"});
}

TEST(LinearAttentionErrors, RefusesDecayInFullAttention) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3}, {3, 5}}) {
    Call call;
    call.options.causal = false;
    call.options.decay = at::zeros(shape);
    expect_refused(call, {"expected", "decay", "causal"});
  }
}

TEST(LinearAttentionErrors, RefusesADecayOfAWrongShape) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {5}, {3, 4}, {1, 3, 5}}) {
    Call call;
    call.options.decay = at::zeros(shape);
    expect_refused(call, {"expected decay [H] or [H, D]", "got ["});
  }
}

TEST(LinearAttentionErrors, RefusesNormFeaturesThatDoNotFit) {
  Call lone, unwanted, missing, wrong, flat;
  lone.options.denominator = "separate";
  lone.options.q_norm = at::ones({2, 3, 4, 8});
  expect_refused(lone, {"expected q_norm and k_norm together", "got only q_norm"});
  unwanted.options.q_norm = unwanted.options.k_norm = at::ones({2, 3, 4, 8});
  expect_refused(unwanted, {"expected denominator 'separate'", "got"});
  missing.options.denominator = "separate";
  expect_refused(missing, {"expected q_norm and k_norm", "got none"});
  wrong.options = lone.options;
  wrong.options.k_norm = at::ones({2, 3, 4, 9});
  expect_refused(wrong, {"expected k_norm [B, H, M, F]", "got [2, 3, 4, 9]"});
  flat.options.denominator = "separate";
  flat.options.q_norm = flat.options.k_norm = at::ones({});
  expect_refused(flat, {"expected q_norm [B, H, N, F]", "got []"});
}

TEST(LinearAttentionErrors, RefusesAChannelDecayOverNormFeaturesOfAnotherWidth) {
  Call call;
  call.options.denominator = "separate";
  call.options.q_norm = call.options.k_norm = at::ones({2, 3, 4, 8});
  call.options.decay = at::zeros({3, 5});
  expect_refused(call, {"expected", "5", "got", "8"});
}

TEST(LinearAttentionErrors, RefusesAStateOfAWrongShape) {
  Call s, z;
  s.from.s = at::zeros({2, 3, 6, 5});
  expect_refused(s, {"expected s [B, H, D, E]", "got [2, 3, 6, 5]"});
  z.from.z = at::zeros({2, 3, 6});
  expect_refused(z, {"expected z [B, H, ", "got [2, 3, 6]"});
}

// A correct step with B = 2, H = 3, D = 5, E = 6.
struct Step {
  at::Tensor q = at::ones({2, 3, 5});
  at::Tensor k = at::ones({2, 3, 5});
  at::Tensor v = at::ones({2, 3, 6});
  LinearState state = {at::zeros({2, 3, 5, 6}), at::zeros({2, 3, 5})};
  LinearOptions options;

  std::string refused() const {
    return refusal([&] { linear_attention_step(q, k, v, state, options); });
  }
};

void expect_refused(const Step& step, const std::vector<std::string>& parts) {
  expect_line(step.refused(), "linear_attention_step", parts);
}

TEST(LinearAttentionStepErrors, TheStepTheseTestsSpoilIsCorrect) {
  EXPECT_EQ(Step().refused(), "nothing was refused");
}

TEST(LinearAttentionStepErrors, RefusesTensorsWithALengthAxis) {
  Step step;
  step.q = step.q.unsqueeze(2);
  expect_refused(step, {"expected q [B, H, D]", "got [2, 3, 1, 5]"});
}

TEST(LinearAttentionStepErrors, RefusesAWrongState) {
  Step s, z, type, none;
  s.state.s = at::zeros({2, 3, 5, 5});
  expect_refused(s, {"expected s [B, H, D, E]", "got [2, 3, 5, 5]"});
  z.state.z = at::zeros({2, 3, 1});
  expect_refused(z, {"expected z [B, H, ", "got [2, 3, 1]"});
  type.state.s = at::zeros({2, 3, 5, 6}, at::kDouble);
  expect_refused(type, {"expected s", "Float", "got Double"});
  none.state = {};
  expect_refused(none, {"expected", "state", "got"});
}

TEST(LinearAttentionStepErrors, RefusesAStateWhoseNumbersShareMemory) {
  Step step;
  step.state.s = at::zeros({1, 1, 5, 6}).expand({2, 3, 5, 6});
  expect_refused(step, {"expected s", "got"});
}

// Calls lagwise::`name` as Python would: arguments by name, the rest default.
void call_by_name(const std::string& name, std::map<std::string, c10::IValue> given) {
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(("lagwise::" + name).c_str(), "");
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op.schema().arguments()) {
    const auto found = given.find(argument.name());
    stack.push_back(found != given.end() ? found->second
                                         : argument.default_value().value());
    if (found != given.end()) given.erase(found);
  }
  ASSERT_TRUE(given.empty()) << given.begin()->first << " is not in " << op.schema();
  op.callBoxed(&stack);
}

TEST(LinearAttentionErrors, RefusesAMaskOfQueriesByKeys) {
  const Call call;
  const std::string said = refusal([&] {
    call_by_name(
        "linear_attention",
        {{"q", call.q}, {"k", call.k}, {"v", call.v}, {"attn_mask", at::ones({4, 4})}});
  });
  expect_line(said, "linear_attention",
              {"expected", "mask", "causal", "got", "[4, 4]"});
}

}  // namespace
}  // namespace lagwise::ops
