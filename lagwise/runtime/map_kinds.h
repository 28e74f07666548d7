#pragma once

#include <optional>
#include <string_view>

#include "lagwise/kernels/favor.h"
#include "lagwise/kernels/feature_map.h"

namespace lagwise::runtime {

// The names of feature maps in a plan.

inline std::optional<kernels::FeatureMap::Kind> pointwise_kind(std::string_view name) {
  using Kind = kernels::FeatureMap::Kind;
  constexpr struct {
    std::string_view name;
    Kind kind;
  } kKinds[] = {{"none", Kind::none}, {"elu1", Kind::elu1},
                {"relu", Kind::relu}, {"relu_squared", Kind::relu_squared},
                {"exp", Kind::exp},   {"silu", Kind::silu}};
  for (const auto& row : kKinds)
    if (row.name == name) return row.kind;
  return std::nullopt;
}

inline std::optional<kernels::Favor::Kind> random_kind(std::string_view name) {
  using Kind = kernels::Favor::Kind;
  if (name == "positive") return Kind::positive;
  if (name == "two_sided") return Kind::two_sided;
  if (name == "relu") return Kind::relu;
  return std::nullopt;
}

}  // namespace lagwise::runtime
