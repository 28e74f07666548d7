// What every attention that remembers by content promises (docs/architecture.md,
// contracts 1, 2, 4 and 5), joined with every encoding that serves it: gates, the delta
// rule, convolutions and gated outputs, in heads whose keys and values have widths of
// their own. All in double.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/nn/attention_presets.h"
#include "lagwise/nn/multi_head_attention.h"

namespace lagwise::nn {
namespace {

using at::Tensor;

constexpr int64_t kModel = 5, kHeads = 2, kKeys = 4, kValues = 3;
constexpr int64_t kPast = 5, kNext = 6;  // rows, where a past is read first
constexpr double kStep = 1e-5;           // of finite differences

constexpr const char* kAttentions[] = {
    "linear:forget=gated,clocks=2..9",
    "linear:map=favor:features=6,forget=gated,clocks=2..9",
    "linear:map=none,denominator=none,write=delta",
    "linear:map=elu1,forget=gated,clocks=2..9,write=delta",
    "gated_deltanet:clocks=2..9,qk_bias=true",
    "mamba2-like:clocks=2..9",
    "linear:conv=3,gate_output=true",
    "forgetting_transformer:clocks=2..9",
    "exact:forget=gated,clocks=2..9,window=3,conv=2,gate_output=true",
};

std::vector<std::string> encoding_texts() {
  std::vector<std::string> all = {"decay:kind=learned", "lrpe:decay=retnet",
                                  "sine_spe:decay=alibi", "sinusoidal:decay=retnet"};
  for (const EncodingRow& row : encodings()) all.emplace_back(row.text());
  return all;
}

bool is_exact(const std::string& attention) {
  return expand_preset(attention).starts_with("exact");
}

void make_double(const Parameters& parameters) {
  for (const auto& [name, x] : parameters)
    x.set_data(x.to(at::kDouble)), x.requires_grad_(true);
}

/// One attention of one layer, its gates and convolutions far from where they begin.
struct Subject {
  bool exact;
  std::shared_ptr<Encoding> encoding;
  std::shared_ptr<MultiHeadAttention> layer;

  Subject(const std::string& attention, const std::string& text)
      : exact(is_exact(attention)),
        encoding(make_encoding_for(attention, text,
                                   {.heads = kHeads,
                                    .dim = kKeys,
                                    .model_dim = kModel,
                                    .value_dim = kValues,
                                    .seed = 5})) {
    AttentionConfig config;
    config.dim = kModel, config.heads = kHeads;
    config.key_dim = kKeys, config.value_dim = kValues;
    config.attention = attention, config.encoding_text = text;
    Initial initial{4};
    layer = std::make_shared<MultiHeadAttention>(config, encoding, initial);
    layer->to(at::kDouble);
    make_double(encoding->shared());
    const at::NoGradGuard no_graph;
    at::manual_seed(8);
    for (const auto& one : layer->named_parameters())
      for (const char* part : {"forget.", "write.", "conv.", "norm_gain", "_bias"})
        if (one.key().find(part) != std::string::npos)
          one.value().add_(at::randn_like(one.value()), 0.4);
  }

  Pass pass(int64_t start, int64_t n, const Code* previous = nullptr) const {
    Pass pass;
    pass.draw = {.seed = 3};
    pass.at = {.query_start = start, .key_start = start, .horizon = 16};
    pass.code = encoding->code(pass.at, pass.draw, n, n, previous);
    return pass;
  }

  Tensor whole(const Tensor& x) const {
    return layer->forward(x, x, pass(0, x.size(1)));
  }

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = layer->parameters();
    for (const auto& [name, tensor] : encoding->shared()) all.push_back(tensor);
    return all;
  }
};

bool serves(const std::string& attention, const Traits& traits) {
  for (const MixerRow& row : mixers())
    if (row.name == Spec(expand_preset(attention)).name())
      return row.serves(traits, true);
  return false;
}

/// Calls act(subject) for every pair that goes together.
template <class Act>
void for_each_subject(const Act& act) {
  int pairs = 0;
  for (const std::string attention : kAttentions)
    for (const std::string& text : encoding_texts()) {
      const Traits traits =
          make_encoding(text, {.heads = kHeads, .dim = kKeys})->traits();
      if (!serves(attention, traits)) continue;
      if (text == "decay:kind=learned" && attention.find("favor") != attention.npos)
        continue;  // the operator has no gradient of a decay beside FAVOR's log_scale
      SCOPED_TRACE(text + " with " + attention);
      // Factors by lag leave no state for a gate to act on.
      const bool by_lag = traits.by_lag && !traits.decays && !is_exact(attention);
      if (by_lag && attention != "linear:conv=3,gate_output=true") {
        EXPECT_THROW(Subject(attention, text), std::invalid_argument);
        continue;
      }
      act(Subject(attention, text));
      ++pairs;
    }
  EXPECT_GE(pairs, 80);
}

void expect_near(const Tensor& got, const Tensor& want, double tolerance = 1e-9) {
  ASSERT_EQ(got.sizes(), want.sizes());
  if (want.numel() == 0) return;
  EXPECT_LE((got - want).abs().max().item<double>(),
            tolerance * want.abs().max().item<double>());
}

Tensor input(int64_t n) {
  at::manual_seed(2);
  return at::randn({2, n, kModel}, at::kDouble);
}

TEST(MemoryContract, PiecesAndStepsEqualTheWhole) {
  const at::NoGradGuard no_graph;
  for_each_subject([](const Subject& subject) {
    const Tensor x = input(12), want = subject.whole(x);
    const auto state = subject.layer->start(2);
    Code code;
    int64_t begin = 0;
    for (const int64_t end : {4, 5, 6, 9, 10, 11, 12}) {
      const Pass pass = subject.pass(begin, end - begin, begin > 0 ? &code : nullptr);
      code = pass.code;
      const Tensor got = subject.layer->extend(*state, x.slice(1, begin, end), pass);
      expect_near(got, want.slice(1, begin, end), 1e-6);
      begin = end;
    }
  });
}

/// NaN itself where there is a state; an FFT (t5, kerple) would spread it, so there the
/// future is only another one.
TEST(MemoryContract, NothingAheadIsSeenEvenIfItIsNaN) {
  const at::NoGradGuard no_graph;
  for_each_subject([](const Subject& subject) {
    const Traits& traits = subject.encoding->traits();
    const double ahead = traits.by_lag && !traits.decays && !subject.exact
                             ? 7.0
                             : std::numeric_limits<double>::quiet_NaN();
    const Tensor x = input(11), want = subject.whole(x);
    const Tensor broken = x.clone();
    broken.slice(1, 7).fill_(ahead);
    expect_near(subject.whole(broken).slice(1, 0, 7), want.slice(1, 0, 7));
  });
}

/// Along a random direction of the input and of each parameter.
TEST(MemoryContract, GradientsEqualFiniteDifferences) {
  for_each_subject([](const Subject& subject) {
    const Tensor x = input(9).requires_grad_(true);
    const Tensor weight = at::randn({2, 9, kModel}, at::kDouble);
    (subject.whole(x) * weight).sum().backward();
    const at::NoGradGuard no_graph;
    std::vector<Tensor> inputs = subject.parameters();
    inputs.push_back(x);
    for (Tensor& one : inputs) {
      if (!one.grad().defined()) continue;  // e.g. of an encoding added to the input
      const Tensor d = at::randn_like(one) * kStep;
      const auto moved = [&](double by) {
        one.add_(d, by);
        return (subject.whole(x) * weight).sum().item<double>();
      };
      const double up = moved(1), down = moved(-2);
      one.add_(d);
      const double want = (up - down) / 2, got = (one.grad() * d).sum().item<double>();
      EXPECT_NEAR(got, want, 1e-5 * std::abs(want) + 1e-9) << one.sizes();
    }
  });
}

/// Training after a past that is read without gradient: along a random direction of each
/// parameter and of the rows, from the same state.
TEST(MemoryContract, GradientsAfterAPastEqualFiniteDifferences) {
  for_each_subject([](const Subject& subject) {
    const Tensor past = input(kPast + kNext).slice(1, 0, kPast);
    const Tensor x = input(kPast + kNext).slice(1, kPast).clone().requires_grad_(true);
    const Tensor weight = at::randn({2, kNext, kModel}, at::kDouble);
    const auto read = [&](Code& code) {
      const at::NoGradGuard no_graph;
      auto state = subject.layer->start(2);
      const Pass pass = subject.pass(0, kPast);
      subject.layer->extend(*state, past, pass);
      code = pass.code;
      return state;
    };
    const auto loss = [&](AttentionState& state, const Code& code) {
      const Pass pass = subject.pass(kPast, kNext, &code);
      return (subject.layer->extend(state, x, pass) * weight).sum();
    };
    Code code;
    auto state = read(code);
    loss(*state, code).backward();
    const at::NoGradGuard no_graph;
    std::vector<Tensor> inputs = subject.layer->parameters();
    inputs.push_back(x);
    for (Tensor& one : inputs) {
      if (!one.grad().defined()) continue;
      const Tensor d = at::randn_like(one) * kStep;
      const auto moved = [&](double by) {
        Code before;
        auto from = read(before);
        one.add_(d, by);
        const double value = loss(*from, before).item<double>();
        one.sub_(d, by);
        return value;
      };
      const double want = (moved(1) - moved(-1)) / 2;
      EXPECT_NEAR((one.grad() * d).sum().item<double>(), want,
                  1e-5 * std::abs(want) + 1e-9)
          << one.sizes();
    }
  });
}

TEST(MemoryContract, TakesNoRowsAndRowsOfOtherStrides) {
  const at::NoGradGuard no_graph;
  for_each_subject([](const Subject& subject) {
    const Tensor x = input(6);
    const Tensor strided = x.transpose(0, 1).contiguous().transpose(0, 1);
    expect_near(subject.whole(strided), subject.whole(x));
    EXPECT_EQ(subject.whole(input(0)).sizes(), at::IntArrayRef({2, 0, kModel}));
  });
}

TEST(MemoryContract, EveryGateReachesTheResult) {
  for_each_subject([](const Subject& subject) {
    (subject.whole(input(9)) * at::randn({2, 9, kModel}, at::kDouble)).sum().backward();
    for (const auto& one : subject.layer->named_parameters())
      for (const char* part : {"forget.", "write.", "conv.", "gate_proj."})
        if (one.key().find(part) != std::string::npos) {
          EXPECT_GT(one.value().grad().abs().max().item<double>(), 0) << one.key();
        }
  });
}

}  // namespace
}  // namespace lagwise::nn
