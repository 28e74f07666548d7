#include "lagwise/ops/sine_spe.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>
#include <vector>

#include "lagwise/ops/spe/sine_spe_cpu.h"
#include "lagwise/ops/torch/expect.h"
#include "lagwise/ops/torch/once_differentiable.h"

// In this order: CPU, Meta, Autograd, the public function, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = c10::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;

constexpr const char* kOp = "sine_spe";

// ---- CPU and Meta

Tensor like_output(const SineCall& call, const Tensor& x) {
  return at::empty({call.b, call.h, x.size(2), call.width}, x.options());
}

template <bool compute>
Two forward_op(const Tensor& q, const Tensor& k, const Tensor& frequency,
               const Tensor& phase, const Tensor& amplitude, const Optional& constant,
               const Tensor& q_at, const Tensor& k_at, const Optional& z,
               const Optional& gate, const Optional& fold, int64_t width) {
  const SineCall call = check_sine_spe(kOp, q, k, frequency, phase, amplitude, constant,
                                       q_at, k_at, z, gate, fold, width);
  Tensor q_out = like_output(call, q), k_out = like_output(call, k);
  if constexpr (compute) sine_spe_cpu(call, q_out, k_out);
  return {q_out, k_out};
}

template <bool compute>
std::vector<Tensor> backward_op(const Tensor& dq_out, const Tensor& dk_out,
                                const Tensor& q, const Tensor& k,
                                const Tensor& frequency, const Tensor& phase,
                                const Tensor& amplitude, const Optional& constant,
                                const Tensor& q_at, const Tensor& k_at,
                                const Optional& z, const Optional& gate,
                                const Optional& fold, int64_t width) {
  const SineCall call = check_sine_spe(kOp, q, k, frequency, phase, amplitude, constant,
                                       q_at, k_at, z, gate, fold, width);
  expect_tensor(kOp, "dq_out", "[B, H, N, R]", dq_out,
                {call.b, call.h, q.size(2), call.width}, q);
  expect_tensor(kOp, "dk_out", "[B, H, M, R]", dk_out,
                {call.b, call.h, k.size(2), call.width}, q);
  SineGradientsOf to;
  if constexpr (compute) {
    to = sine_spe_backward_cpu(call, dq_out, dk_out);
  } else {
    const auto like = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
    to = {like(q), like(k), like(frequency), like(phase), like(amplitude), {}};
    if (constant) to.constant = like(*constant);
  }
  // The dispatcher returns no undefined tensors.
  if (!to.constant.defined()) to.constant = at::empty({0}, frequency.options());
  return {to.q, to.k, to.frequency, to.phase, to.amplitude, to.constant};
}

// ---- Autograd

auto& forward_operator() {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("lagwise::sine_spe", "")
                       .typed<decltype(forward_op<true>)>();
  return op;
}

auto& backward_operator() {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("lagwise::_sine_spe_backward", "")
                       .typed<decltype(backward_op<true>)>();
  return op;
}

Optional optional(const Tensor& x) { return x.defined() ? Optional(x) : c10::nullopt; }

struct SineSpe : torch::autograd::Function<SineSpe> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& frequency, const Tensor& phase,
                               const Tensor& amplitude, const Optional& constant,
                               const Tensor& q_at, const Tensor& k_at,
                               const Optional& z, const Optional& gate,
                               const Optional& fold, int64_t width) {
    const auto value = [](const Optional& x) { return x.value_or(Tensor()); };
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [q_out, k_out] = forward_operator().call(
        q, k, frequency, phase, amplitude, constant, q_at, k_at, z, gate, fold, width);
    ctx->save_for_backward({q, k, frequency, phase, amplitude, value(constant), q_at,
                            k_at, value(z), value(gate), value(fold)});
    ctx->saved_data["width"] = width;
    return {q_out, k_out};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto x = ctx->get_saved_variables();
    variable_list gradients;
    {
      at::AutoGradMode off(false);
      gradients = backward_operator().call(
          grads[0], grads[1], x[0], x[1], x[2], x[3], x[4], optional(x[5]), x[6], x[7],
          optional(x[8]), optional(x[9]), optional(x[10]),
          ctx->saved_data["width"].toInt());
    }
    if (!x[5].defined()) gradients[5] = Tensor();
    variable_list inputs(x.begin(), x.begin() + 6);
    inputs.insert(inputs.end(), grads.begin(), grads.end());
    gradients = once_differentiable(kOp, inputs, std::move(gradients));
    gradients.resize(12);
    return gradients;
  }
};

Two forward_autograd(const Tensor& q, const Tensor& k, const Tensor& frequency,
                     const Tensor& phase, const Tensor& amplitude,
                     const Optional& constant, const Tensor& q_at, const Tensor& k_at,
                     const Optional& z, const Optional& gate, const Optional& fold,
                     int64_t width) {
  // No gradient would look to a learner like a gradient of zero.
  const auto needs = [](const Optional& x) { return x && x->requires_grad(); };
  TORCH_CHECK(!(needs(z) || needs(gate) || needs(q_at) || needs(k_at)), kOp,
              ": expected noise and positions that need no gradient, got some that do");
  const auto out = SineSpe::apply(q, k, frequency, phase, amplitude, constant, q_at,
                                  k_at, z, gate, fold, width);
  return {out[0], out[1]};
}

}  // namespace

std::pair<Tensor, Tensor> sine_spe(const Tensor& q, const Tensor& k,
                                   const SineWaves& waves, const SineMixing& mixing,
                                   const Tensor& q_at, const Tensor& k_at) {
  const auto [q_out, k_out] = forward_operator().call(
      q, k, waves.frequency, waves.phase, waves.amplitude, optional(waves.constant),
      q_at, k_at, optional(mixing.z), optional(mixing.gate), optional(mixing.fold),
      mixing.width);
  return {q_out, k_out};
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "sine_spe(Tensor q, Tensor k, Tensor frequency, Tensor phase, Tensor amplitude, "
      "Tensor? constant, Tensor q_at, Tensor k_at, Tensor? z, Tensor? gate, "
      "Tensor? fold, int width) -> (Tensor q, Tensor k)");
  m.def(
      "_sine_spe_backward(Tensor dq_out, Tensor dk_out, Tensor q, Tensor k, "
      "Tensor frequency, Tensor phase, Tensor amplitude, Tensor? constant, "
      "Tensor q_at, Tensor k_at, Tensor? z, Tensor? gate, Tensor? fold, int width) "
      "-> Tensor[]");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("sine_spe", forward_op<true>);
  m.impl("_sine_spe_backward", backward_op<true>);
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("sine_spe", forward_op<false>);
  m.impl("_sine_spe_backward", backward_op<false>);
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) { m.impl("sine_spe", forward_autograd); }

}  // namespace lagwise::ops
