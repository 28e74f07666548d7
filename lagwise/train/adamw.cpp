#include "lagwise/train/adamw.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
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

/// In pieces of a fixed size, so that the sum does not depend on the number of threads.
double sum_of_squares(const at::Tensor& x) {
  constexpr int64_t kPiece = 1 << 16, kLanes = 8;
  const int64_t count = x.numel(), pieces = (count + kPiece - 1) / kPiece;
  const float* const data = x.data_ptr<float>();
  std::vector<double> sums(static_cast<size_t>(pieces));
  at::parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      const float *at = data + piece * kPiece,
                  *end = data + std::min(count, (piece + 1) * kPiece);
      std::array<double, kLanes> lanes = {};  // sums that need not wait for each other
      for (; end - at >= kLanes; at += kLanes)
        for (int64_t j = 0; j < kLanes; ++j)
          lanes[size_t(j)] += static_cast<double>(at[j]) * static_cast<double>(at[j]);
      for (; at < end; ++at)
        lanes[0] += static_cast<double>(*at) * static_cast<double>(*at);
      sums[size_t(piece)] = std::accumulate(lanes.begin(), lanes.end(), 0.0);
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
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
    sum += sum_of_squares(gradient.contiguous());
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

at::Tensor AdamW::flat_gradient() const {
  at::Tensor flat = at::zeros({numbers()}, at::kFloat);
  int64_t begin = 0;
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.grad().defined())
      flat.narrow(0, begin, tensor.numel()).copy_(tensor.grad().reshape({-1}));
    begin += tensor.numel();
  }
  return flat;
}

void AdamW::set_gradient(const at::Tensor& flat) {
  int64_t begin = 0;
  for (auto& [name, tensor] : parameters_) {
    if (tensor.grad().defined())
      tensor.mutable_grad() =
          flat.narrow(0, begin, tensor.numel()).view(tensor.sizes());
    begin += tensor.numel();
  }
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
