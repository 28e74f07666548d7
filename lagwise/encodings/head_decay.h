#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lagwise/core/spec.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

/// The slopes of ALiBi: 2^(-exponent h / H), h = 1..H, for H a power of two; otherwise
/// those of the next smaller power of two, then every other slope of the next larger.
std::vector<double> alibi_slopes(int64_t heads, double exponent = 8);

/// How fast the past fades, per head, one word each:
///
///     retnet     g_h = 1 - 2^(-5-h), h = 0..H-1                   (arXiv:2307.08621)
///     alibi      g_h = exp(-slope_h)                              (arXiv:2108.12409)
///     lightning  g_h = exp(-slope_h (1 - l / (L-1) + 1e-5))  (arXiv:2307.14995, code)
///     tnl        g_h = exp(-(8 h / H) (1 - l / L)), h = 1..H      (the same, paper)
///
/// for layer l of L: deeper layers remember longer.
const std::vector<std::string>& decay_kinds();

/// The option `decay`: none, the default, or one of decay_kinds().
std::string take_decay(Spec& spec);

/// log g_h as double [H], each < 0, of one of decay_kinds().
at::Tensor head_decay(const std::string& kind, int64_t heads, int64_t layer,
                      int64_t layers);

/// Lets rows that are encoded fade by exp(log_factor |lag|), log_factor [H]: as a decay
/// to causal linear attention, and as the bias by lag that is the same kernel to all
/// others. Rows must stand one after another; `name` refuses any that do not.
void fade(const char* name, Encoded& encoded, const at::Tensor& log_factor,
          const Placement& at);

}  // namespace lagwise
