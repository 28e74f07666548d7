#pragma once

#include "lagwise/train/recipe.h"

namespace lagwise {

/// The learning rate of the s-th step, s from 1, with W = warmup and T = steps:
///
///     cosine        lr min(1, s / W) (f + (1 - f) (1 + cos(pi t)) / 2),
///                   t = (s - W) / (T - W) within [0, 1], f = final_lr
///     inverse_root  lr min(1, s / W) / sqrt(max(s, W)), which is at most lr / sqrt(W):
///                   the rule of the Long Range Arena, whose lr of 0.05 with 8000 steps
///                   of warm-up means 0.00056
///     constant      lr min(1, s / W)
///
/// A pure function: a resumed run needs nothing but its step.
double learning_rate(const TrainConfig& config, int64_t step);

}  // namespace lagwise
