// The runtime without torch against the torch path: every encoding of the registry with
// variants of linear attention.

#include "lagwise/train/exported_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lagwise/attention/feature_map.h"
#include "lagwise/core/errors.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/models/model.h"

namespace lagwise {
namespace {

using kernels::WeightType;
using ::testing::HasSubstr;

constexpr int64_t kTokens = 300;

ModelConfig small_config() {
  ModelConfig config;
  config.vocabulary = 37, config.layers = 2, config.dim = 24, config.heads = 3;
  config.length = 512, config.seed = 5;
  return config;
}

/// A model whose parameters are not what they begin with: gates of zero and gains of one
/// would hide mistakes.
std::shared_ptr<Model> shaken_model(const ModelConfig& config) {
  const auto model = make_model(config);
  model->eval();
  const at::NoGradGuard no_graph;
  at::manual_seed(7);
  for (auto& each : model->parameters()) each.add_(0.1 * at::randn_like(each));
  return model;
}

std::vector<int64_t> some_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((i * i + 3 * i / 2) % vocabulary);
  return tokens;
}

/// Feeds a text in prompts and steps; calls `look` with its logits after each part.
template <class Look>
void feed(const runtime::Model& model, runtime::State& state,
          const std::vector<int64_t>& tokens, const Look& look) {
  const std::span<const int64_t> all = tokens;
  for (size_t at = 0; at < all.size();) {
    const size_t prompt = std::min<size_t>(at % 2 == 0 ? 75 : 40, all.size() - at);
    model.prefill(state, all.subspan(at, prompt));
    look(at += prompt);
    for (int i = 0; i < 20 && at < all.size(); ++i) {
      model.step(state, all[at]);
      look(++at);
    }
  }
}

/// The largest difference of the logits over their range.
double distance(const ModelConfig& config, WeightType weights = WeightType::f32) {
  const auto model = shaken_model(config);
  const Draw draw{.seed = 3, .step = 11};
  const std::vector<int64_t> tokens = some_tokens(kTokens, config.vocabulary);
  const auto begun = model->start(1, draw);
  const at::Tensor want =
      model->extend_all(*begun, at::tensor(tokens, at::kLong).unsqueeze(0))[0]
          .contiguous();
  const double range = (want.max() - want.min()).item<double>();
  const ModelInMemory small = open_in_memory(exported_model(*model, draw, weights));
  const auto state = small.model->start();
  double worst = 0;
  feed(*small.model, *state, tokens, [&](size_t taken) {
    const float* row =
        want.data_ptr<float>() + (static_cast<int64_t>(taken) - 1) * config.vocabulary;
    for (int64_t v = 0; v < config.vocabulary; ++v) {
      const double apart = std::abs(state->logits()[v] - row[v]);
      worst = std::isnan(apart) ? INFINITY : std::max(worst, apart);
    }
  });
  EXPECT_EQ(state->position(), kTokens);
  return worst / range;
}

/// Every row of the registry, and options that change what one token needs.
std::vector<std::string> encoding_texts() {
  std::vector<std::string> all = {
      "rope:layout=interleaved",
      "rope:layout=half,partial=0.5,scaling=yarn,factor=4",
      "rope:layout=half,scaling=dynamic_ntk,factor=2,original=128",
      "rope:layout=interleaved,xpos=true",
      "rope:layout=half,decay=lightning",
      "lrpe:angles=fixed,p=identity",
      "lrpe:lambda=mixed,vectors=learned,reflections=2",
      "lrpe:lambda=unitary",
      "lrpe:lambda=unitary,p=fourier",
      "lrpe:p=fourier,spread=true",
      "lrpe:p=dct,type=b",
      "lrpe:p=odd_even,decay=retnet",
      "sine_spe:realizations=16,gated=false",
      "sine_spe:noise=sketch,realizations=24",
      "sine_spe:noise=exact,decay=alibi",
      "sine_spe:shared=false,realizations=32,init=wide",
      "sinusoidal:layout=half,decay=retnet",
      "sinusoidal:layout=tensor2tensor",
      "decay:kind=learned"};
  for (const EncodingRow& row : encodings()) all.emplace_back(row.text());
  return all;
}

std::vector<std::string> attention_texts() {
  std::vector<std::string> all = {
      "linear:map=elu1,qk_bias=true,norm=rms_head",
      "linear:map=none,denominator=none,norm=rms_head",
      "linear:map=silu,denominator=none,norm=layer_concat,gate_output=true",
      "linear:map=elu1,forget=gated,clocks=8..64",
      "linear:map=none,write=delta,norm=rms_head,norm_gain=false",
      "linear:map=elu1,write=delta,forget=gated,conv=4,gate_output=true,norm=rms_head",
      "linear:map=relu,conv=2,eps_mode=clamp",
      "linear:map=favor:features=32,denominator=none,norm=rms_head",
      "linear:map=favor,forget=gated"};
  for (const FeatureMapRow& row : feature_maps())
    all.push_back("linear:map=" + std::string(row.name) +
                  (make_feature_map(row.name)->positive()
                       ? ""
                       : ",denominator=none,norm=rms_head"));
  return all;
}

/// Whether torch can build and run such a model.
bool can_be_built(const ModelConfig& config) {
  try {
    const auto model = make_model(config);
    model->extend(*model->start(1, {}), at::zeros({1, 2}, at::kLong));
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  } catch (const c10::Error&) {
    return false;
  }
}

TEST(ExportedModel, EqualsTheTorchPathForEveryEncodingAndAttention) {
  int served = 0, refused = 0;
  for (const std::string& encoding : encoding_texts())
    for (const std::string& attention : attention_texts()) {
      SCOPED_TRACE(encoding + " with " + attention);
      ModelConfig config = small_config();
      config.encoding = encoding, config.attention = attention;
      if (!can_be_built(config)) continue;
      try {
        make_model(config)->one_token({});
      } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr("sine_spe"));  // the list of what can
        ++refused;
        continue;
      }
      EXPECT_LT(distance(config), 1e-5);
      ++served;
    }
  EXPECT_GT(served, 300);
  EXPECT_GT(refused, 20);
}

TEST(ExportedModel, EqualsTheTorchPathInEveryShapeOfModel) {
  for (const bool pre_norm : {true, false})
    for (const bool tied : {true, false})
      for (const char* norm : {"rms", "layer"}) {
        ModelConfig config = small_config();
        config.encoding = "rope:layout=half";
        config.pre_norm = pre_norm, config.tied = tied, config.norm = norm;
        config.key_dim = 6, config.value_dim = 10, config.feed_forward = 33;
        EXPECT_LT(distance(config), 1e-5) << norm << pre_norm << tied;
      }
}

TEST(ExportedModel, MixesEncodingsAndAttentionsByLayer) {
  ModelConfig config = small_config();
  config.layers = 3;
  config.encoding = "sinusoidal | rope:layout=half | learned";
  if (can_be_built(config)) {
    EXPECT_LT(distance(config), 1e-5);
  }
}

TEST(ExportedModel, RefusesWhatHasNoStateOfConstantSizeWithTheListOfWhatHas) {
  const auto why = [](const std::string& encoding, const std::string& attention) {
    ModelConfig config = small_config();
    config.encoding = encoding, config.attention = attention;
    try {
      exported_model(*make_model(config), {}, WeightType::f32);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* encoding : {"conv_spe", "t5", "kerple", "lrpe:lambda=permutation"}) {
    const std::string text = why(encoding, "linear:map=elu1");
    EXPECT_THAT(text, HasSubstr(encoding));
    EXPECT_THAT(text, HasSubstr("alibi, decay, learned, lrpe, none, rope:layout=half, "
                                "sine_spe, sinusoidal"));
    EXPECT_EQ(text.find('\n'), text.npos);
  }
  EXPECT_THAT(why("none", "exact"), HasSubstr("expected linear attention"));
  ModelConfig config = small_config();
  config.model = "classifier", config.classes = 3;
  EXPECT_THROW(exported_model(*make_model(config), {}, WeightType::f32),
               std::invalid_argument);
}

TEST(ExportedModel, IsCloseInFewerBits) {
  ModelConfig config = small_config();
  config.dim = 96, config.encoding = "rope:layout=half";
  EXPECT_LT(distance(config, WeightType::bf16), 0.02);
  EXPECT_LT(distance(config, WeightType::int8), 0.05);
  EXPECT_GT(distance(config, WeightType::int8), 1e-5);
}

/// The logits after a text, as bytes.
std::string logit_bits(const runtime::State& state) {
  return {reinterpret_cast<const char*>(state.logits()),
          static_cast<size_t>(state.layout().vocabulary()) * sizeof(float)};
}

ModelInMemory rich_model(WeightType weights) {
  ModelConfig config = small_config();
  config.encoding = "rope:layout=half";
  config.attention =
      "linear:map=elu1,write=delta,forget=gated,conv=4,gate_output=true,norm=rms_head";
  return open_in_memory(exported_model(*shaken_model(config), {}, weights));
}

TEST(ExportedModel, HasTheSameBitsOnAnyNumberOfThreadsAndHoweverATextIsSplit) {
  for (const WeightType weights :
       {WeightType::f32, WeightType::bf16, WeightType::int8}) {
    const ModelInMemory small = rich_model(weights);
    const std::vector<int64_t> tokens = some_tokens(60, 37);
    std::string alone;
    for (const int threads : {1, 2, 3}) {
      small.model->set_threads(threads);
      const auto state = small.model->start(), by_step = small.model->start();
      feed(*small.model, *state, tokens, [](size_t) {});
      for (const int64_t token : tokens) small.model->step(*by_step, token);
      if (alone.empty()) alone = logit_bits(*state);
      EXPECT_EQ(logit_bits(*state), alone) << threads;
      EXPECT_EQ(logit_bits(*by_step), alone) << threads;
    }
  }
}

TEST(ExportedModel, StepsManyTextsAsItStepsEachAlone) {
  for (const WeightType weights : {WeightType::f32, WeightType::int8}) {
    const ModelInMemory small = rich_model(weights);
    small.model->set_threads(2);
    std::vector<std::unique_ptr<runtime::State>> together, alone;
    std::vector<runtime::State*> states;
    for (int64_t i = 0; i < 37; ++i) {
      together.push_back(small.model->start());
      small.model->prefill(*together.back(), some_tokens(1 + 3 * i, 37));
      alone.push_back(std::make_unique<runtime::State>(*together.back()));
      states.push_back(together.back().get());
    }
    for (int64_t step = 0; step < 5; ++step) {
      std::vector<int64_t> tokens;
      for (int64_t i = 0; i < 37; ++i) tokens.push_back((7 * i + step) % 37);
      small.model->step_many(states, tokens);
      for (size_t i = 0; i < alone.size(); ++i) small.model->step(*alone[i], tokens[i]);
    }
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_EQ(logit_bits(*together[i]), logit_bits(*alone[i])) << i;
  }
}

TEST(ExportedModel, HoldsItsAnglesAtTenMillion) {
  ModelConfig config = small_config();
  config.encoding = "rope:layout=half";
  const auto model = shaken_model(config);
  const ModelInMemory small =
      open_in_memory(exported_model(*model, {}, WeightType::f32));
  runtime::Places places(small.model->plan(), 1);
  const int64_t far = 10'000'000;
  places.stand_at(&far, 1);
  const auto table = places.turn(0, 0, 0);
  for (int64_t j = 0; j < 4; ++j) {
    const double f = std::pow(10000.0, -2.0 * double(j) / 8.0);
    EXPECT_NEAR(table(0, j), std::cos(f * double(far)), 1e-6);
    EXPECT_NEAR(table(0, 4 + j), std::sin(f * double(far)), 1e-6);
  }
}

}  // namespace
}  // namespace lagwise
