#pragma once

#include "lagwise/encodings/encoding.h"
#include "lagwise/ops/encoded.h"

namespace lagwise::nn {

/// What all layers know about one pass over a batch.
struct Pass {
  Placement at = {};
  Draw draw = {};
  Code code = {};               ///< of the encoding, at these positions
  at::Tensor lengths = {};      ///< [B]: real rows of the queries; undefined: all
  at::Tensor key_lengths = {};  ///< [B]: those of the keys, where they are others
  double dropout = 0;           ///< 0 outside of training
};

}  // namespace lagwise::nn
