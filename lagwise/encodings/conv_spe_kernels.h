#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/encodings/encoding.h"

namespace lagwise {

/// The taps of ConvSPE's kernels along each axis: "7x7" as {7, 7}.
/// std::invalid_argument unless they are 1 to 3 numbers of taps.
std::vector<int64_t> conv_spe_taps(const std::string& text);

/// Fresh "query_kernel" and "key_kernel" [H D, 1, taps..] of a layer: uniform in [0, 1)
/// over sqrt(taps / 2), so that the expected template is a triangle of height 1/2.
Parameters conv_spe_kernels(const HeadShape& shape, const std::vector<int64_t>& taps,
                            int64_t layer);

}  // namespace lagwise
