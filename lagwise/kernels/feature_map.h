#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// A feature map that acts on each number alone, so that a kernel can apply it
/// while it loads a row.
///
///     none          phi(x) = x
///     elu1          phi(x) = x + 1 for x > 0, exp(x) otherwise
///     relu          phi(x) = max(x, 0) + offset
///     relu_squared  phi(x) = max(x, 0)^2 + offset
///     exp           phi(x) = exp(x)
///     silu          phi(x) = x / (1 + exp(-x)): signed
///
/// Slopes at a kink are those of the left side, as in torch.
struct FeatureMap {
  enum class Kind { none, elu1, relu, relu_squared, exp, silu };
  Kind kind = Kind::none;
  double offset = 0.0;  ///< of the relus: keeps the denominator away from zero
};

/// out = phi(x), number by number; any steps. out may be x itself.
template <class T>
void map_rows(const FeatureMap& map, MatView<const T> x, MatView<T> out) noexcept;

/// out = phi'(x) grad: the chain rule through map_rows.
template <class T>
void map_slopes(const FeatureMap& map, MatView<const T> x, MatView<const T> grad,
                MatView<T> out) noexcept;

}  // namespace lagwise::kernels
