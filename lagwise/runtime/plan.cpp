#include "lagwise/runtime/plan.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/strict_json.h"

namespace lagwise::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr struct {
  kernels::WeightType type;
  const char* name;
} kWeightNames[] = {{kernels::WeightType::f32, "f32"},
                    {kernels::WeightType::bf16, "bf16"},
                    {kernels::WeightType::int8, "int8"}};

template <class P, class Visit>
void each_plan_setting(P& plan, const Visit& visit) {
  visit("vocabulary", plan.vocabulary), visit("dim", plan.dim);
  visit("heads", plan.heads), visit("key_dim", plan.key_dim);
  visit("value_dim", plan.value_dim), visit("feed_forward", plan.feed_forward);
  visit("norm", plan.norm), visit("norm_eps", plan.norm_eps);
  visit("pre_norm", plan.pre_norm), visit("tied", plan.tied);
}

/// Takes settings out of an object, one after the other.
class SettingReader {
 public:
  SettingReader(const std::string& file, const nlohmann::json& from)
      : file_(file), from_(from) {}

  template <class T>
  void operator()(const char* name, T& to) const {
    const auto found = from_.find(name);
    if (found == from_.end() || !is_a(*found, to))
      throw DataError(file_, -1, std::string("a plan with '") + name + "'");
    to = found->template get<T>();
  }

 private:
  static bool is_a(const nlohmann::json& x, bool) { return x.is_boolean(); }
  static bool is_a(const nlohmann::json& x, const std::string&) {
    return x.is_string();
  }
  static bool is_a(const nlohmann::json& x, int64_t) { return x.is_number_integer(); }
  static bool is_a(const nlohmann::json& x, double) { return x.is_number(); }

  const std::string& file_;
  const nlohmann::json& from_;
};

int64_t count_in(const std::string& file, const nlohmann::json& from, const char* name,
                 int64_t most) {
  int64_t count = 0;
  SettingReader(file, from)(name, count);
  if (count < 0 || count > most)
    throw DataError(
        file, -1,
        "a plan with '" + std::string(name) + "' up to " + std::to_string(most));
  return count;
}

}  // namespace

const char* name_of(kernels::WeightType type) {
  for (const auto& row : kWeightNames)
    if (row.type == type) return row.name;
  return "";
}

kernels::WeightType weight_type(const std::string& name) {
  for (const auto& row : kWeightNames)
    if (row.name == name) return row.type;
  throw std::invalid_argument("expected weights f32, bf16 or int8, got '" + name + "'");
}

LayerWidths widths_of(const Plan& plan, const OneTokenLayer& layer) {
  const OneTokenPlace& place = layer.place;
  const OneTokenMap& map = layer.memory.map;
  LayerWidths w{};
  w.mapped = place.after_map ? plan.key_dim : place.width;
  const int64_t directions =
      map.directions.empty() ? 0
                             : map.directions.size() / std::max<int64_t>(1, w.mapped);
  w.features = map.random.empty()          ? w.mapped
               : map.random == "two_sided" ? 2 * directions
                                           : directions;
  if (map.horizon > 0) w.features *= 2;
  w.state = place.after_map ? place.width : w.features;
  w.norm = !layer.memory.divides ? 0 : place.separate ? w.features : w.state;
  w.widest = std::max({plan.key_dim, place.width, w.features, w.state});
  return w;
}

int64_t most_positions(const Plan& plan) {
  int64_t most = int64_t{1} << 29;  // as far as angles hold: kernels/wave_row.h
  for (const OneTokenInput& input : plan.one.inputs)
    if (!input.table.empty()) most = std::min(most, input.table.size() / plan.dim);
  for (const OneTokenLayer& layer : plan.one.layers)
    if (layer.memory.map.horizon > 0) most = std::min(most, layer.memory.map.horizon);
  return most;
}

std::string plan_text(const Plan& plan) {
  Plan copy = plan;  // visitors may change what they visit
  Json json = {{"format", 1}, {"weights", name_of(plan.weights)}};
  each_plan_setting(copy,
                    [&](const char* name, const auto& value) { json[name] = value; });
  json["inputs"] = plan.one.inputs.size();
  json["layers"] = Json::array();
  for (OneTokenLayer& layer : copy.one.layers) {
    Json settings = Json::object();
    each_setting(layer,
                 [&](const char* name, const auto& value) { settings[name] = value; });
    json["layers"].push_back(settings);
  }
  return json.dump();
}

Plan read_plan(const std::string& file, const std::string& text) {
  constexpr int64_t kMostLayers = 4096;
  data::JsonLimits limits;
  limits.fractions = true;
  const nlohmann::json json =
      data::parse_strict_json(file, 0, data::bytes_of(text), limits);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array() ||
      json["layers"].size() > size_t{kMostLayers})
    throw DataError(file, -1, "a plan with a list of at most 4096 layers");
  if (count_in(file, json, "format", 1000) != 1)
    throw DataError(file, -1, "a plan of format 1, got one of a later version");
  Plan plan;
  const SettingReader read(file, json);
  each_plan_setting(plan, read);
  std::string weights;
  read("weights", weights);
  try {
    plan.weights = weight_type(weights);
  } catch (const std::invalid_argument& error) {
    throw DataError(file, -1,
                    "a plan whose weights are known: " + std::string(error.what()));
  }
  plan.one.inputs.resize(
      static_cast<size_t>(count_in(file, json, "inputs", kMostLayers)));
  for (const nlohmann::json& settings : json["layers"]) {
    if (!settings.is_object()) throw DataError(file, -1, "a plan of objects");
    each_setting(plan.one.layers.emplace_back(), SettingReader(file, settings));
  }
  return plan;
}

}  // namespace lagwise::runtime
