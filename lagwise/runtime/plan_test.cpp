#include "lagwise/runtime/plan.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/runtime/testing_model.h"

namespace lagwise::runtime {
namespace {

using namespace lagwise::testing;

TEST(RuntimePlan, ComesBackFromItsText) {
  Plan plan = small_plan(kernels::WeightType::bf16);
  plan.norm = "layer", plan.pre_norm = plan.tied = false;
  plan.one.inputs.resize(2);
  plan.one.layers[1].memory.map.offset = 0.001;
  plan.one.layers[1].place.turn_scale = 1.0 / 3;
  const Plan back = read_plan("f", plan_text(plan));
  EXPECT_EQ(plan_text(back), plan_text(plan));
  EXPECT_EQ(back.weights, plan.weights);
  EXPECT_EQ(back.one.layers[1].place.turn_scale, 1.0 / 3);
  EXPECT_EQ(back.one.layers[1].memory.map.pointwise, "elu1");
  EXPECT_EQ(back.one.inputs.size(), 2u);
}

TEST(RuntimePlan, KnowsHowWideItsRowsAre) {
  Plan plan = small_plan();
  OneTokenLayer& layer = plan.one.layers[0];
  LayerWidths w = widths_of(plan, layer);  // rotated features, divided apart
  EXPECT_EQ(w.state, 4);
  EXPECT_EQ(w.norm, 4);
  layer.place = {};
  layer.place.width = 10;
  layer.memory.map.random = "two_sided";
  layer.memory.map.directions = std::vector<float>(30);
  w = widths_of(plan, layer);  // three directions of encoded rows, both ways
  EXPECT_EQ(w.mapped, 10);
  EXPECT_EQ(w.features, 6);
  EXPECT_EQ(w.state, 6);
  layer.memory.divides = false;
  EXPECT_EQ(widths_of(plan, layer).norm, 0);
}

TEST(RuntimePlan, EndsWhereATableOrAHorizonEnds) {
  Plan plan = small_plan();
  EXPECT_GT(most_positions(plan), 100'000'000);
  plan.one.layers[1].memory.map.horizon = 77;
  EXPECT_EQ(most_positions(plan), 77);
  plan.one.inputs.resize(1);
  plan.one.inputs[0].table = std::vector<float>(5 * 12);
  EXPECT_EQ(most_positions(plan), 5);
}

TEST(RuntimePlan, NamesItsWeights) {
  for (const char* name : {"f32", "bf16", "int8"})
    EXPECT_STREQ(name_of(weight_type(name)), name);
  EXPECT_THROW(weight_type("int4"), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::runtime
