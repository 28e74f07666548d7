#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "lagwise/ops/encoded.h"

namespace lagwise {

/// The random numbers of SineSPE. Each is a pure function of the draw (seed and step)
/// and of its own coordinates; none depends on a position, so a code has no length.
///
///     z[h, d, j, r]   stream kSineSpe, head h, feature 2K d + j, realisation r
///     gate[h, d, r]   stream kGate, layer, head h, feature d, realisation r
///     fold[h, f]      +-(1 + pi_h(f) mod R): pi_h a uniform permutation and the signs
///                     of code features from kSineSpe, the signs of gates from kGate
///
/// so layers share the code's noise and differ in their gates'; where they are not to
/// share it, z and the code's part of a fold have the layer among their coordinates.
/// Where the draw gives
/// tensors, "sine_spe.z" [1, H, D, 2K, R], "sine_spe.gate" [H, D, R] or
/// "sine_spe.fold" [H, F], those are used instead.
///
/// The numbers of the last draw are kept: a stream asks for the same ones at each step.
class SineSpeNoise {
 public:
  struct Shape {
    int64_t heads, dim, sines, width;
    bool gated, shared = true;
    int64_t waves() const { return 2 * sines + (gated ? 1 : 0); }
  };

  explicit SineSpeNoise(const Shape& shape);

  at::Tensor code(const Draw& draw, int64_t layer,
                  at::ScalarType type);  ///< [H, D, 2K, R]
  at::Tensor gate(const Draw& draw, int64_t layer, at::ScalarType type);  ///< [H, D, R]
  at::Tensor fold(const Draw& draw, int64_t layer);             ///< [H, F], int64
  const at::Tensor& plain_fold() const { return plain_fold_; }  ///< f to bin f

 private:
  int64_t code_layer(int64_t layer) const { return shape_.shared ? 0 : layer; }
  at::Tensor given(const Draw& draw, const std::string& name,
                   at::IntArrayRef sizes) const;
  at::Tensor kept(const Draw& draw, const std::string& name,
                  const std::function<at::Tensor()>& make);

  Shape shape_;
  at::Tensor plain_fold_;
  std::mutex mutex_;
  Draw draw_;  // of what is kept
  std::map<std::string, at::Tensor> kept_;
};

}  // namespace lagwise
