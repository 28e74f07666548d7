#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/core/noise.h"

namespace lagwise {

/// How the directions of random features are drawn.
struct DirectionChoice {
  bool orthogonal = true;  ///< within each block of D rows
  bool chi_norms = true;   ///< lengths as those of Gaussian vectors; else all sqrt D
};

/// m directions of D numbers in double, [m, D]; a pure function of the noise, the
/// layer and the place, with the same bits on every machine.
///
/// Rows are Gaussian. Each block of D of them is made orthonormal (Gram and Schmidt,
/// which gives rotations without a preferred direction), or each row unit by itself;
/// then every row gets its length: that of another Gaussian row (chi), or sqrt D. With
/// chi norms each row alone is again exactly Gaussian, so features stay unbiased.
at::Tensor random_directions(const Noise& noise, int64_t layer, int64_t m, int64_t d,
                             const DirectionChoice& choice);

}  // namespace lagwise
