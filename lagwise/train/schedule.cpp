#include "lagwise/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lagwise {

double learning_rate(const TrainConfig& config, int64_t step) {
  const auto s = static_cast<double>(step), w = static_cast<double>(config.warmup);
  const auto steps = static_cast<double>(config.steps);
  const double risen = w > 0 ? std::min(1.0, s / w) : 1.0;
  if (config.schedule == "inverse_root")
    return config.lr * risen / std::sqrt(std::max({s, w, 1.0}));
  if (config.schedule == "cosine") {
    const double t = steps > w ? std::clamp((s - w) / (steps - w), 0.0, 1.0) : 0.0;
    const double fall = 0.5 * (1 + std::cos(std::numbers::pi * t));
    return config.lr * risen * (config.final_lr + (1 - config.final_lr) * fall);
  }
  return config.lr * risen;
}

}  // namespace lagwise
