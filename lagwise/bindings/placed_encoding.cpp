#include "lagwise/bindings/placed_encoding.h"

#include <stdexcept>

#include "lagwise/nn/mixer.h"

namespace lagwise::bindings {
namespace {

int64_t at_least_one(const Json& config, const char* name, int64_t otherwise) {
  const auto value = entry<int64_t>(config, name, otherwise);
  if (value < 1)
    throw std::invalid_argument(std::string(name) + ": expected at least 1, got " +
                                std::to_string(value));
  return value;
}

HeadShape shape_of(const Json& config) {
  HeadShape shape;
  shape.heads = at_least_one(config, "heads", 1);
  shape.dim = at_least_one(config, "dim", 1);
  shape.value_dim = entry<int64_t>(config, "value_dim", 0);
  shape.model_dim = entry<int64_t>(config, "model_dim", 0);
  shape.seed = entry<uint64_t>(config, "seed", 0);
  return shape;
}

const char* stage_name(Traits::Stage stage) {
  switch (stage) {
    case Traits::Stage::input:
      return "input";
    case Traits::Stage::before_map:
      return "before_map";
    case Traits::Stage::after_map:
      return "after_map";
    case Traits::Stage::score:
      return "score";
  }
  return "";
}

}  // namespace

PlacedEncoding::PlacedEncoding(const Json& config)
    : shape(shape_of(config)),
      text(entry<std::string>(config, "encoding", "none")),
      attention(entry<std::string>(config, "attention", "")),
      causal(entry(config, "causal", true)),
      horizon(entry<int64_t>(config, "horizon", 0)),
      grid(entry<std::vector<int64_t>>(config, "grid", {})),
      encoding(attention.empty() ? make_encoding(text, shape)
                                 : nn::make_encoding_for(attention, text, shape)) {
  layer.index = entry<int64_t>(config, "layer", 0);
  layer.count = at_least_one(config, "layers", 1);
  layer.own = encoding->layer(layer.index, layer.count);
}

Parameters PlacedEncoding::parameters(const std::string& prefix) const {
  Parameters all;
  for (const auto& [name, tensor] : encoding->shared())
    all.emplace_back(prefix + name, tensor);
  for (const auto& [name, tensor] : layer.own) all.emplace_back(prefix + name, tensor);
  return all;
}

nn::Pass PlacedEncoding::pass(const Inputs& inputs, int64_t n, int64_t m) const {
  nn::Pass pass;
  pass.at.query_start = inputs.query_start(), pass.at.key_start = inputs.key_start();
  pass.at.causal = causal, pass.at.horizon = horizon, pass.at.grid = grid;
  pass.draw = inputs.draw();
  pass.code = encoding->code(pass.at, pass.draw, n, m);
  pass.lengths = inputs["lengths"], pass.key_lengths = inputs["key_lengths"];
  return pass;
}

Json PlacedEncoding::facts() const {
  const Traits& traits = encoding->traits();
  return {{"stage", stage_name(traits.stage)},
          {"width", encoding->width()},
          {"dim", encoding->shape().dim},
          {"separate_denominator", traits.denominator == Traits::Denominator::separate},
          {"stochastic", traits.stochastic},
          {"relative", traits.relative},
          {"by_lag", traits.by_lag},
          {"decays", traits.decays},
          {"dims", traits.dims},
          {"exact", traits.exact},
          {"linear_causal", traits.linear_causal},
          {"linear_full", traits.linear_full}};
}

}  // namespace lagwise::bindings
