#pragma once

// Support for tests: a small decoder with weights of nobody's training.

#include <cmath>
#include <string>
#include <vector>

#include "lagwise/runtime/model.h"
#include "lagwise/runtime/model_writer.h"

namespace lagwise::testing {

inline std::vector<float> waves(int64_t count, double step, double size = 0.3) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(size * std::sin(step * static_cast<double>(i + 1)));
  return x;
}

/// Two layers of three heads with rotations, gates and a short convolution.
inline runtime::Plan small_plan(
    kernels::WeightType weights = kernels::WeightType::f32) {
  runtime::Plan plan;
  plan.vocabulary = 21, plan.dim = 12, plan.heads = 3;
  plan.key_dim = 4, plan.value_dim = 4, plan.feed_forward = 20;
  plan.weights = weights;
  OneTokenLayer layer;
  layer.place.width = 4, layer.place.after_map = layer.place.separate = true;
  layer.place.planes = 2;
  layer.place.frequency = std::vector<double>{1.0, 0.01};
  layer.memory.map.pointwise = "elu1";
  layer.memory.eps = 1e-6;
  layer.memory.forgets = true, layer.memory.convolution = 3;
  layer.memory.gates_output = true;
  layer.memory.norm = "rms_head", layer.memory.norm_eps = 1e-5;
  plan.one.layers.assign(2, layer);
  return plan;
}

inline runtime::ModelWriter small_writer(const runtime::Plan& plan) {
  runtime::ModelWriter writer(plan);
  double step = 0.7;
  const auto dense = [&](const std::string& name, int64_t outputs, int64_t cols) {
    const std::vector<float> w = waves(outputs * cols, step += 0.13);
    const std::vector<float> bias = waves(outputs, step, 0.1);
    writer.dense(name, {w.data(), outputs, cols, cols}, bias.data(),
                 name.ends_with("gates"));
  };
  const auto norm = [&](const std::string& name) {
    writer.floats(name + ".weight", {plan.dim},
                  std::vector<float>(static_cast<size_t>(plan.dim), 1.1f));
    if (plan.norm == "layer")
      writer.floats(name + ".bias", {plan.dim}, waves(plan.dim, step += 0.13, 0.1));
  };
  dense("embed", plan.vocabulary, plan.dim);
  norm("norm");
  for (size_t i = 0; i < plan.one.layers.size(); ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    norm(at + "attention_norm"), norm(at + "feed_norm");
    dense(at + "mixed", plan.mixed_columns() + plan.value_columns(), plan.dim);
    dense(at + "gates", 2 * plan.heads, plan.dim);
    writer.floats(at + "forget_rate", {plan.heads}, {0.1f, 0.2f, 0.3f});
    writer.floats(at + "taps", {3, plan.mixed_columns()},
                  waves(3 * plan.mixed_columns(), 0.37));
    dense(at + "out", plan.dim, plan.value_columns());
    dense(at + "feed_in", plan.feed_forward, plan.dim);
    dense(at + "feed_out", plan.dim, plan.feed_forward);
  }
  writer.text("words", R"({"task": "language", "words": []})");
  return writer;
}

inline LineVector<uint8_t> small_model_bytes(
    kernels::WeightType weights = kernels::WeightType::f32) {
  return small_writer(small_plan(weights)).bytes();
}

}  // namespace lagwise::testing
