#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "bench/comparison.h"
#include "bench/recurrence.h"
#include "lagwise/ops/linear_attention.h"

/// What `lagwise bench linear` times: each function makes its inputs ready and
/// returns the call to be timed, which returns what it computed.
namespace lagwise::bench {

/// q and k are not negative, so that a denominator is never near zero.
struct Inputs {
  at::Tensor q, k, v;  ///< [1, H, N, D], [1, H, N, D], [1, H, N, E]
};

Inputs random_inputs(const Shape& shape);

ops::LinearOptions causal(const std::string& feature_map,
                          const std::string& denominator);

/// The product alone: no feature map, no denominator.
ops::LinearOptions bare_product();

// Forward.
Call our_forward(const Inputs& in, const ops::LinearOptions& options);
Call torch_forward(const Inputs& in, const ops::LinearOptions& options);
Call recurrence_forward(const Inputs& in, Passes passes);

/// The kernel itself on one head: never cut into strips or segments.
Call kernel_forward(const Inputs& in);

// Backward with the denominator: dq, dk and dv. The forward pass is done, and
// its graph kept, before the call is timed.
Call our_gradient(const Inputs& in, const at::Tensor& grad_out);
Call torch_gradient(const Inputs& in, const at::Tensor& grad_out);
Call recurrence_gradient(const Inputs& in, const at::Tensor& grad_out, Passes passes);

/// One token and a state that has seen `position` of them.
struct Decoding {
  at::Tensor q, k, v;  ///< [1, H, D], [1, H, D], [1, H, E]
  ops::LinearState state;
};

Decoding decoding_at(int64_t position, const Shape& shape);
Call our_step(const Decoding& at);
Call eager_step(const Decoding& at);

}  // namespace lagwise::bench
