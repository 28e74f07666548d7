#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lagwise/ops/encoded.h"

namespace lagwise::ops {

/// The noise that conv_spe draws on a line, at positions first .. first + P - 1, into
/// z [H, D, P, R]. For callers that keep a window of it. `noise`: gaussian or sign.
void draw_conv_noise(const at::Tensor& z, int64_t first, const std::string& noise,
                     const Draw& draw);

/// The noise of a gate, which has no position: one number per head, feature and
/// realisation, into z [H, D, R].
void draw_gate_noise(const at::Tensor& z, int64_t layer, const std::string& noise,
                     const Draw& draw);

}  // namespace lagwise::ops
