#pragma once

#include <cstdint>

#include "lagwise/core/noise.h"
#include "lagwise/data/sources/dice.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

/// The random choices for one row of a training batch: a function of seed, step,
/// micro-step and row alone. So a run resumes by knowing its step, and a row stays what
/// it is in a larger batch.
inline data::Dice row_dice(uint64_t seed, int64_t step, int64_t micro_step,
                           int64_t row) {
  return data::Dice(
      Noise(seed, streams::kData, step, micro_step).at({.realisation = row}));
}

/// One of 0 .. count - 1. Two draws, so that a corpus may exceed 2^32 tokens.
inline int64_t pick(data::Dice& dice, int64_t count) {
  const double u = dice.roll() + dice.roll() / 4294967296.0;
  return std::min(count - 1, static_cast<int64_t>(u * static_cast<double>(count)));
}

}  // namespace lagwise
