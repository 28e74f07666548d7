#pragma once

#include <vector>

#include "lagwise/kernels/favor.h"
#include "lagwise/kernels/feature_map.h"
#include "lagwise/runtime/places.h"
#include "lagwise/runtime/plan.h"

namespace lagwise::runtime {

/// What attention of one layer needs besides the plan, made once when a model is opened.
struct LayerKinds {
  LayerWidths widths;
  kernels::FeatureMap map;
  kernels::Favor favor;
  std::vector<float> directions;  ///< packed for kernels::favor_rows
  int64_t direction_count = 0;
  std::vector<float> gain;  ///< of the output norm [H, E]; ones where it has none

  LayerKinds(const Plan& plan, const OneTokenLayer& layer);
};

/// One row of one head.
struct HeadRow {
  size_t layer;
  int64_t head, row;  ///< `row` of the pass
  int64_t position;
  const float *q, *k, *v;       ///< [D], [D], [E]: with the bias of their projection
  const float* log_decay;       ///< of the forget gate; null: none
  const float* write_strength;  ///< of the delta rule; null: none
  float* state;                 ///< S, z and m of the head
  float* out;                   ///< [E]
};

/// Attention of one head with one token: positions, features, the state. Each thread
/// has one, with scratch of its own.
class HeadStep {
 public:
  HeadStep(const Plan& plan, const std::vector<LayerKinds>& kinds);

  void run(const HeadRow& at, const Places& places);

 private:
  /// A query in row 0, a key in row 1.
  using Pair = MatView<float>;
  Pair pair(std::vector<float>& memory, int64_t width);
  Pair encode(const HeadRow& at, const OneTokenPlace& place, const Places& places,
              Pair x);
  Pair turned(const HeadRow& at, const OneTokenPlace& place, const Places& places,
              Pair x);
  Pair waved(const HeadRow& at, const OneTokenPlace& place, const Places& places,
             Pair x);
  Pair features(const HeadRow& at, const OneTokenMap& map, Pair x);
  Pair next(int64_t width);
  void advance(const HeadRow& at, Pair encoded, Pair norm);

  const Plan& plan_;
  const std::vector<LayerKinds>& kinds_;
  std::vector<float> first_, second_, third_, waves_, scratch_, norm_;
  std::vector<float>*
      free_[2];  // memory for the next rows: that of the rows before last
  float log_scale_[2] = {0, 0};
  bool scaled_ = false;  // whether the features of this row have a log_scale
};

}  // namespace lagwise::runtime
