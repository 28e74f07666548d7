#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

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

/// Checks everything once, so that neither the callers nor the code below need to.
SineCall check_sine_spe(const char* op, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& frequency, const at::Tensor& phase,
                        const at::Tensor& amplitude,
                        const c10::optional<at::Tensor>& constant,
                        const at::Tensor& q_at, const at::Tensor& k_at,
                        const c10::optional<at::Tensor>& z,
                        const c10::optional<at::Tensor>& gate,
                        const c10::optional<at::Tensor>& fold, int64_t width);

}  // namespace lagwise::ops
