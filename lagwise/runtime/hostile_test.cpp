// Files that lie: every one is a DataError of one line, or a model that works.

#include <gtest/gtest.h>

#include <algorithm>

#include "lagwise/core/errors.h"
#include "lagwise/runtime/model.h"
#include "lagwise/runtime/testing_model.h"

namespace lagwise::runtime {
namespace {

using namespace lagwise::testing;

/// Opens, and where that works takes some tokens. Whether it opened.
bool survives(const LineVector<uint8_t>& bytes) {
  try {
    const auto model = Model::open("hostile", bytes);
    const auto state = model->start();
    const int64_t tokens[] = {0, model->plan().vocabulary - 1,
                              1 % model->plan().vocabulary};
    if (model->can_take(*state, tokens)) model->prefill(*state, tokens);
    return true;
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return false;
  }
}

bool plan_survives(const Plan& plan) {
  ModelWriter writer = small_writer(small_plan());
  // The tensors of one plan with the settings of another.
  LineVector<uint8_t> bytes = writer.bytes();
  const data::Safetensors file("m", bytes);
  auto metadata = file.metadata();
  metadata["plan"] = plan_text(plan);
  return survives(data::safetensors_bytes(file.tensors(), metadata));
}

TEST(HostileModel, CutShortNeverOpens) {
  const LineVector<uint8_t> whole = small_model_bytes();
  EXPECT_TRUE(survives(whole));
  for (size_t size = 0; size < whole.size(); size += 61)
    EXPECT_FALSE(survives({whole.begin(), whole.begin() + static_cast<int64_t>(size)}));
}

TEST(HostileModel, WithAChangedByteIsRefusedOrWorks) {
  const LineVector<uint8_t> whole = small_model_bytes(kernels::WeightType::int8);
  int worked = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); at += 13) {
    LineVector<uint8_t> changed = whole;
    changed[at] = static_cast<uint8_t>(changed[at] ^ 0x11);
    ++(survives(changed) ? worked : refused);
  }
  EXPECT_GT(worked, 0);   // a weight may have any value
  EXPECT_GT(refused, 0);  // a plan or a name may not
}

TEST(HostileModel, WithAnotherPlanIsRefused) {
  EXPECT_TRUE(plan_survives(small_plan()));
  const auto refused = [&](const auto& change) {
    Plan plan = small_plan();
    change(plan, plan.one.layers[1]);
    return !plan_survives(plan);
  };
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.dim = 24; }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.dim = -1; }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.heads = 1 << 20; }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.vocabulary = 2000; }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.norm = "layer"; }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.norm = "other"; }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.tied = false; }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.one.inputs.resize(1); }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.one.layers.resize(3); }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.one.layers.clear(); }));
  EXPECT_TRUE(refused([](Plan& p, auto&) { p.weights = kernels::WeightType::int8; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.place.width = 8; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.place.planes = 3; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.place.blocks = 3; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.place.sines = 2; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.memory.convolution = 65; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.memory.convolution = 4; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.memory.map.pointwise = "x"; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.memory.map.random = "positive"; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.memory.map.horizon = -5; }));
  EXPECT_TRUE(refused([](Plan&, auto& l) { l.memory.rewrites = true; }));
}

/// The message of a plan that is refused before anything is computed by it.
std::string refusal(const Plan& plan) {
  try {
    check_plan("hostile", plan);
  } catch (const DataError& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

TEST(HostileModel, WithHalfOfAPairOfTensorsIsRefused) {
  const auto bytes = small_model_bytes();
  const data::Safetensors file("m", bytes);
  const std::vector<float> bias(12, 0.5f);
  const data::Bytes of_bias(reinterpret_cast<const uint8_t*>(bias.data()), 48);
  auto tensors = file.tensors();
  tensors.push_back({"layers.1.q_bias", "F32", {3, 4}, of_bias});
  EXPECT_FALSE(survives(data::safetensors_bytes(tensors, file.metadata())));
  tensors.push_back({"layers.1.k_bias", "F32", {3, 4}, of_bias});
  EXPECT_TRUE(survives(data::safetensors_bytes(tensors, file.metadata())));
}

TEST(HostileModel, WithAStateBeyondAllMemoryIsRefused) {
  Plan plan = small_plan();
  EXPECT_EQ(refusal(plan), "(nothing was refused)");
  plan.heads = 1, plan.key_dim = plan.value_dim = 1 << 20;
  for (OneTokenLayer& layer : plan.one.layers) layer.place.width = plan.key_dim;
  EXPECT_EQ(refusal(plan), "hostile: expected in plan: states of at most 4 GB");
}

TEST(HostileModel, RefusesAPlanThatIsNone) {
  const LineVector<uint8_t> bytes = small_model_bytes();
  const data::Safetensors file("m", bytes);
  auto metadata = file.metadata();
  for (const char* text : {"", "{", "[]", "{}", "{\"layers\": []}", "null",
                           "{\"layers\": [1], \"format\": 1}", "{\"format\": 2}"}) {
    metadata["plan"] = text;
    EXPECT_FALSE(survives(data::safetensors_bytes(file.tensors(), metadata))) << text;
  }
  metadata.erase("plan");
  EXPECT_FALSE(survives(data::safetensors_bytes(file.tensors(), metadata)));
  metadata = file.metadata();
  metadata["same"] = R"({"layers.1.frequency": "nothing"})";
  EXPECT_FALSE(survives(data::safetensors_bytes(file.tensors(), metadata)));
}

}  // namespace
}  // namespace lagwise::runtime
