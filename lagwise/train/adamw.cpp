#include "lagwise/train/adamw.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/kernels/adamw.h"
#include "lagwise/models/model.h"

namespace lagwise {
namespace {

constexpr int64_t kGrain = 16384;  // parameters of one thread at least

kernels::AdamwRates rates_of(const TrainConfig& config, int64_t step, double lr,
                             double grad_scale, double decay) {
  const auto t = static_cast<double>(step);
  return {
      .beta1 = static_cast<float>(config.beta1),
      .beta2 = static_cast<float>(config.beta2),
      .eps = static_cast<float>(config.eps),
      .shrink = static_cast<float>(1 - lr * decay),
      .rate = static_cast<float>(lr / (1 - std::pow(config.beta1, t))),
      .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(config.beta2, t))),
      .grad_scale = static_cast<float>(grad_scale)};
}

}  // namespace

std::vector<NamedTensor> trained_parameters(const Model& model) {
  std::vector<NamedTensor> all;
  for (const auto& item : model.named_parameters())
    if (item.value().requires_grad()) all.push_back({item.key(), item.value()});
  return all;
}

bool decays(const NamedTensor& parameter) {
  const std::string& name = parameter.name;
  const bool encoding = name.starts_with("pos.") || name.starts_with("cross_pos.") ||
                        name.find(".pos.") != std::string::npos ||
                        name.find(".cross_pos.") != std::string::npos;
  return parameter.tensor.dim() == 2 && name.ends_with(".weight") && !encoding;
}

AdamW::AdamW(std::vector<NamedTensor> parameters) : parameters_(std::move(parameters)) {
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.scalar_type() != at::kFloat || !tensor.is_contiguous())
      throw std::invalid_argument("cannot train " + name +
                                  ": expected a contiguous float32 tensor");
    mean_.push_back(at::zeros_like(tensor.detach()));
    square_.push_back(at::zeros_like(tensor.detach()));
  }
}

int64_t AdamW::numbers() const {
  int64_t count = 0;
  for (const NamedTensor& one : parameters_) count += one.tensor.numel();
  return count;
}

double AdamW::gradient_norm() const {
  double sum = 0;
  for (const auto& [name, tensor] : parameters_) {
    const at::Tensor& gradient = tensor.grad();
    if (!gradient.defined()) continue;
    const double norm = gradient.norm().item<double>();
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

void AdamW::update(const TrainConfig& config, int64_t step, double lr,
                   double grad_scale) {
  const auto still = rates_of(config, step, lr, grad_scale, 0);
  const auto pulled = rates_of(config, step, lr, grad_scale, config.weight_decay);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    if (!parameter.grad().defined()) continue;
    const at::Tensor gradient = parameter.grad().contiguous();
    const kernels::AdamwRates& rates = decays(parameters_[i]) ? pulled : still;
    const float* g = gradient.data_ptr<float>();
    float* p = parameter.data_ptr<float>();
    float* m = mean_[i].data_ptr<float>();
    float* v = square_[i].data_ptr<float>();
    at::parallel_for(0, parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
      kernels::adamw(rates, g + begin, m + begin, v + begin, p + begin, end - begin);
    });
  }
}

void AdamW::forget_gradients() {
  for (auto& [name, tensor] : parameters_) tensor.mutable_grad() = at::Tensor();
}

std::vector<NamedTensor> AdamW::state() const {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    all.push_back({parameters_[i].name + ".exp_avg", mean_[i]});
    all.push_back({parameters_[i].name + ".exp_avg_sq", square_[i]});
  }
  return all;
}

}  // namespace lagwise
