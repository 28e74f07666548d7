#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/one_token.h"
#include "lagwise/core/spec.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

/// phi of linear attention: score(i, j) = phi(q_i) . phi(k_j).
class FeatureMap {
 public:
  enum class Side { query, key };

  virtual ~FeatureMap() = default;

  /// The width F of the features of queries and keys of width D.
  virtual int64_t width(int64_t d) const { return d; }

  /// Whether features are never negative, so that they may be divided by their sum.
  virtual bool positive() const { return true; }

  /// What keeps the denominator of these features away from zero: den + value, or
  /// max(den, value).
  struct Epsilon {
    double value = 1e-6;
    bool clamp = false;
  };
  virtual Epsilon epsilon() const { return {}; }

  /// What `ops::linear_attention` calls this map, "elu1", where it can fuse it;
  /// empty where features must be formed first.
  virtual std::string fused() const { return ""; }

  /// The random directions of one layer for rows of width D, [F, D] or undefined
  /// where the map has none. draw.given["favor"] is taken instead, if there.
  virtual at::Tensor directions(const Draw& draw, int64_t layer, int64_t d,
                                const at::TensorOptions& options) const;

  /// Features of x [B, H, N, D]. `at` places the rows, for maps that need it.
  virtual Features features(const at::Tensor& x, Side side,
                            const at::Tensor& directions,
                            const Placement& at) const = 0;

  /// The same for one row of width D, as data (core/one_token.h); `horizon` is that of
  /// the placement.
  virtual OneTokenMap one_token(const Draw& draw, int64_t layer, int64_t d,
                                int64_t horizon) const = 0;
};

/// One row of the table of feature maps.
struct FeatureMapRow {
  std::string_view name;
  std::string_view summary;
  std::string_view paper;
  /// Takes its options from the spec. It must not refuse their defaults.
  std::unique_ptr<FeatureMap> (*make)(Spec& spec);
};

/// Adds a row. Define one per file, at namespace scope.
struct RegisterFeatureMap {
  explicit RegisterFeatureMap(FeatureMapRow row);
};

/// Every row, sorted by name.
const std::vector<FeatureMapRow>& feature_maps();

/// Builds a map from "name:key=value,...". std::invalid_argument lists the legal
/// names or options.
std::unique_ptr<FeatureMap> make_feature_map(std::string_view text);

/// The options of a row with their defaults, as its maker takes them.
std::vector<Spec::Option> feature_map_options(const FeatureMapRow& row);

}  // namespace lagwise
