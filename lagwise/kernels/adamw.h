#pragma once

#include <cstdint>

namespace lagwise::kernels {

/// One update of `count` parameters by Adam with decoupled weight decay, in one pass
/// over memory:
///
///     g <- grad_scale g
///     m <- beta1 m + (1 - beta1) g         v <- beta2 v + (1 - beta2) g^2
///     p <- shrink p - rate m / (sqrt(v) root_scale + eps)
///
/// with shrink = 1 - lr decay, rate = lr / (1 - beta1^t), root_scale =
/// 1 / sqrt(1 - beta2^t) at the t-th update, t from 1.
///
/// Numerics  every number is a function of its own inputs alone: any split of the
///           parameters into calls gives the same bits.
/// Paper     Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
struct AdamwRates {
  float beta1, beta2, eps;
  float shrink, rate, root_scale, grad_scale;
};

void adamw(const AdamwRates& rates, const float* g, float* m, float* v, float* p,
           int64_t count) noexcept;

}  // namespace lagwise::kernels
