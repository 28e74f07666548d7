#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::bench {

/// How often a token walks over the state S [D, E].
enum class Passes {
  two,  ///< update S, then read it: the form in public code (fast-transformers)
  one,  ///< update and read in one walk: as fast as a token-by-token loop gets
};

struct RecurrenceOptions {
  bool normalised = false;  ///< divide by den_i = q_i . z_i + eps
  double eps = 1e-6;
  Passes passes = Passes::two;
};

struct RecurrenceResult {
  at::Tensor out;  ///< [B, H, N, E]
  at::Tensor den;  ///< [B, H, N]; undefined when not normalised
};

/// The baseline people use on CPUs today: one token after the other.
///
///     S += k_i v_i^T,  z += k_i        o_i = S^T q_i / (q_i . z + eps)
///
/// Shapes   q, k [B, H, N, D], v [B, H, N, E]; contiguous float32 or it throws.
/// Threads  heads in parallel, nothing else.
RecurrenceResult recurrence(const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const RecurrenceOptions& options);

struct RecurrenceGradients {
  at::Tensor dq, dk, dv;
};

/// Its gradients in the usual form: one loop forward for dq, one backward for
/// dk and dv. With g_i = do_i / den_i and c_i = -(do_i . o_i) / den_i
/// (g = do, c = 0 without a denominator):
///
///     forward   S += k_i v_i^T, z += k_i      dq_i = S g_i + c_i z
///     backward  R += q_i g_i^T, r += c_i q_i  dk_i = R v_i + r,  dv_i = R^T k_i
RecurrenceGradients recurrence_backward(const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v,
                                        const RecurrenceResult& result,
                                        const at::Tensor& grad_out,
                                        const RecurrenceOptions& options);

}  // namespace lagwise::bench
