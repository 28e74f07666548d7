#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lagwise/train/recipe.h"

namespace lagwise {

class Model;

/// A trained tensor with its name.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// The parameters of a model that are trained, in the order in which it made them.
std::vector<NamedTensor> trained_parameters(const Model& model);

/// Adam with decoupled weight decay (kernels/adamw.h). Decay pulls on the matrices of
/// projections and embeddings alone: a norm's gain, a bias (of heads too: norm_gain,
/// q_bias and k_bias have two axes) or an encoding has no reason to be near 0.
///
/// Its whole state is `exp_avg`, `exp_avg_sq` and the number of the step, which the
/// caller keeps: saved and put back, the next update has the same bits.
class AdamW {
 public:
  explicit AdamW(std::vector<NamedTensor> parameters);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  int64_t numbers() const;  ///< that are trained

  /// The norm of all gradients as one vector. A parameter without gradient counts 0.
  double gradient_norm() const;

  /// The `step`-th update, from 1, with learning rate `lr`, of gradients times
  /// `grad_scale`.
  void update(const TrainConfig& config, int64_t step, double lr, double grad_scale);

  void forget_gradients();

  /// All gradients one after another, [numbers()], 0 where a parameter has none.
  at::Tensor flat_gradient() const;
  /// The way back, for those parameters that have a gradient. Keeps `flat`.
  void set_gradient(const at::Tensor& flat);

  /// NAME.exp_avg and NAME.exp_avg_sq, whose memory is the optimiser's own.
  std::vector<NamedTensor> state() const;

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<at::Tensor> mean_, square_;  // exp_avg, exp_avg_sq
};

/// Whether weight decay pulls on it.
bool decays(const NamedTensor& parameter);

}  // namespace lagwise
