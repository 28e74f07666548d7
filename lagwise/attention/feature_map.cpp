#include "lagwise/attention/feature_map.h"

#include "lagwise/core/registry.h"

namespace lagwise {
namespace {

Registry<FeatureMapRow>& registry() {
  static Registry<FeatureMapRow> registry("feature map");
  return registry;
}

}  // namespace

at::Tensor FeatureMap::directions(const Draw&, int64_t, int64_t,
                                  const at::TensorOptions&) const {
  return {};
}

RegisterFeatureMap::RegisterFeatureMap(FeatureMapRow row) { registry().add(row); }

const std::vector<FeatureMapRow>& feature_maps() { return registry().rows(); }

std::unique_ptr<FeatureMap> make_feature_map(std::string_view text) {
  Spec spec(text);
  auto map = registry().find(spec.name()).make(spec);
  spec.finish();
  return map;
}

std::vector<Spec::Option> feature_map_options(const FeatureMapRow& row) {
  Spec spec(row.name);
  row.make(spec);
  return spec.options();
}

}  // namespace lagwise
