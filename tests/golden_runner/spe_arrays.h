#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/golden_runner/pieces.h"

/// SPE encodings that hold a golden case's parameters and draw its noise, and the
/// layout of its arrays: (B, *size, H, D), with *size a line or a grid.
namespace lagwise::golden {

struct Spe {
  std::unique_ptr<Encoding> encoding;
  Layer layer = {};
  at::Tensor positions = {};  ///< where a case names them; else 0, 1, ..
  at::Tensor gate_noise = {};
  /// The noise of a code over `size`, as the encoding expects it.
  at::Tensor code_noise = {};
  std::string noise_name = {};
  std::vector<int64_t> kernel = {};  ///< empty: the noise does not depend on the size

  /// q, k [B, H, N, D] on a line or grid of `size` cells.
  Encoded encode(const at::Tensor& q, const at::Tensor& k,
                 const std::vector<int64_t>& size);
};

/// `orthogonal`: instead of the stored noise, rows that are orthogonal and of norm
/// sqrt(R), with as many realisations R as that takes.
Spe make_sine_spe(Run& run, bool gated, bool orthogonal);
Spe make_conv_spe(Run& run, bool gated, bool orthogonal);

int64_t cells(const std::vector<int64_t>& size);
/// *size of (B, *size, H, D)
std::vector<int64_t> grid_of(const at::Tensor& x);
/// (B, *size, H, D) -> [B, H, N, D], and back to a stored shape.
at::Tensor to_heads(const at::Tensor& x);
at::Tensor from_heads(const at::Tensor& x, const std::vector<int64_t>& stored);

}  // namespace lagwise::golden
