#pragma once

namespace lagwise::kernels {

/// A feature map that acts on each number alone, so that a kernel can apply it
/// while it loads a row.
///
///     none   phi(x) = x
///     elu1   phi(x) = x + 1 for x > 0, exp(x) otherwise
///     relu   phi(x) = max(x, 0) + offset
struct FeatureMap {
  enum class Kind { none, elu1, relu };
  Kind kind = Kind::none;
  double offset = 0.0;  ///< of relu: keeps the denominator away from zero
};

}  // namespace lagwise::kernels
