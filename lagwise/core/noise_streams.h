#pragma once

#include <cstdint>

/// One number for each purpose that noise is drawn for, so that no two share numbers.
namespace lagwise::streams {

inline constexpr int64_t kParameters = 1, kFavor = 2, kSineSpe = 3, kConvSpe = 4,
                         kGate = 5, kLrpe = 6, kDropout = 7, kSampling = 8, kData = 9,
                         kWeights = 10, kSplits = 11;

}  // namespace lagwise::streams
