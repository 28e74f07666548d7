#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lagwise/ops/sine_spe.h"

namespace lagwise::ops {

/// A checked call. All but q and k are dense.
struct SineCall {
  at::Tensor q, k;
  at::Tensor frequency, turns, amplitude, constant;  // turns: the phase / 2 pi
  at::Tensor z, gate, fold;
  at::Tensor q_at, k_at;  // [B or 1, N], [B or 1, M]
  int64_t b, h, d, sines, width;

  int64_t waves() const { return 2 * sines + (constant.defined() ? 1 : 0); }
};

/// What a call takes, in the order of the operator's schema.
struct SineArguments {
  at::Tensor q, k;
  SineWaves waves;
  at::Tensor q_at, k_at;
  SineMixing mixing;
};

/// Checks everything once, so that neither the callers nor the code below need to.
SineCall check_sine_spe(const char* op, const SineArguments& given);

}  // namespace lagwise::ops
