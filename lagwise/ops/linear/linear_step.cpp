#include "lagwise/kernels/linear_step.h"

#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>
#include <type_traits>

#include "lagwise/ops/linear/linear_views.h"
#include "lagwise/ops/torch/boxed.h"
#include "lagwise/ops/torch/define.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::Denominator;
using kernels::Rows;
using Divide = LinearCall::Divide;

constexpr const char* kOp = "linear_attention_step";

/// A [B, H, width] tensor at one head, as a row.
template <class T>
MatView<T> head_row(const Tensor& x, int64_t head) {
  return head_column<T>(x, head).transposed();
}

/// A [B, H] tensor at one head.
template <class T>
T& number(const Tensor& x, int64_t head) {
  auto* data = static_cast<T*>(x.data_ptr());
  return data[head / x.size(1) * x.stride(0) + head % x.size(1) * x.stride(1)];
}

/// Brings a key that counts exp(log_scale) times into the range of the state, or the
/// state into the range of the key. Returns the weight of the key.
template <class T>
T meet(T log_scale, T& max, MatView<T> s, MatView<T> z) {
  if (log_scale > max) {
    const double factor = std::exp(static_cast<double>(max) - log_scale);
    shrink(s, factor);
    shrink(z, factor);
    max = log_scale;
  }
  return std::isinf(log_scale) ? T{0} : std::exp(log_scale - max);
}

template <class T>
void step(const LinearCall& call, const Tensor& decay, const Tensor& z, Tensor& out) {
  // Waking a thread can cost more than a small step: only beyond about 1 MB of state.
  const int64_t grain = 1 + (1 << 20) / (1 + call.d * call.e * int64_t{sizeof(T)});
  const bool divides = call.divide != Divide::none;
  const bool separate = call.divide == Divide::separate;
  const int64_t scratch = kernels::linear_step_scratch<T>(call.d, call.f);
  const auto per_token = [](const Tensor& x, int64_t head) -> const T* {
    return x.defined() ? &number<const T>(x, head) : nullptr;
  };
  at::parallel_for(0, call.b * call.h, grain, [&](int64_t begin, int64_t end) {
    std::vector<T> own(static_cast<size_t>(scratch));
    for (int64_t head = begin; head < end; ++head) {
      T weight = 1;
      if (call.log_scale.defined())
        weight = meet(number<const T>(call.log_scale, head), number<T>(call.max, head),
                      head_view<T>(call.s, head), head_row<T>(z, head));
      const auto row = [&](const Tensor& x) {
        return Rows<T>{head_row<const T>(x, head), call.map};
      };
      const auto key = [&](const Tensor& x) {
        return Rows<T>{head_row<const T>(x, head), call.map, {&weight, 1, 1}};
      };
      const Rows<T> q = row(call.q), k = key(call.k);
      Denominator<T> denominator;
      if (divides)
        denominator = {Denominator<T>::From::features,
                       static_cast<T>(call.eps),
                       call.clamp,
                       {},
                       head_column<T>(z, head).data};
      kernels::Decay<T> fade = key_decay<T>(call, decay, head);
      fade.log_gate = {per_token(call.log_decay, head), 1, 1};
      kernels::linear_step<T>(q, k, separate ? row(call.q_norm) : q,
                              separate ? key(call.k_norm) : k,
                              head_row<const T>(call.v, head), fade, denominator,
                              head_view<T>(call.s, head), head_row<T>(out, head),
                              own.data(), per_token(call.write_strength, head));
    }
  });
}

/// What a step takes, in the order of its schema.
struct StepArguments {
  Tensor q, k, v;
  LinearState state;
  LinearOptions options;
};

template <class Visit>
void each_argument(StepArguments& x, const Visit& visit) {
  visit(x.q), visit(x.k), visit(x.v);
  visit(x.state.s), visit(x.state.z), visit(x.state.m);
  visit(x.options.feature_map), visit(x.options.decay), visit(x.options.denominator);
  visit(x.options.q_norm), visit(x.options.k_norm);
  visit(x.options.eps), visit(x.options.eps_mode), visit(x.options.log_scale);
  visit(x.options.log_decay), visit(x.options.write_strength);
}

constexpr const char* kSchema =
    "linear_attention_step(Tensor q, Tensor k, Tensor v, Tensor(a!) s, Tensor(b!) z, "
    "Tensor(c!)? m=None, *, str feature_map=\"none\", Tensor? decay=None, "
    "str denominator=\"same\", Tensor? q_norm=None, Tensor? k_norm=None, "
    "float eps=1e-6, str eps_mode=\"add\", Tensor? log_scale=None, "
    "Tensor? log_decay=None, Tensor? write_strength=None) -> Tensor";

StepArguments read_step(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  StepArguments x;
  read_arguments(taken.data(), x);
  return x;
}

LinearCall check_step(StepArguments x) {
  LinearOptions& o = x.options;
  for (Tensor* one : {&x.q, &x.k, &x.v, &o.decay, &o.q_norm, &o.k_norm, &o.log_scale,
                      &o.log_decay, &o.write_strength})
    if (one->defined() && one->scalar_type() == at::kBFloat16)
      *one = one->to(at::kFloat);  // bf16 is storage: computed in f32
  return check_linear(kOp, x.q, x.k, x.v, x.state, o, /*step=*/true);
}

Tensor compute(const StepArguments& x) {
  const auto call = check_step(x);
  Tensor out = at::empty({call.b, call.h, call.e}, call.q.options());
  const Tensor dense_decay =
      call.decay.defined() ? call.decay.contiguous() : call.decay;
  const Tensor& z = x.state.z;
  const Tensor dense_z = z.stride(-1) == 1 || call.f <= 1 ? z : z.contiguous();
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention_step",
                             [&] { step<scalar_t>(call, dense_decay, dense_z, out); });
  if (!dense_z.is_same(z)) z.copy_(dense_z);
  return out.to(x.q.scalar_type());
}

void step_cpu(const c10::OperatorHandle& op, Stack* stack) {
  stack->emplace_back(compute(read_step(op, stack)));
}

/// Tells autograd that a step has written to its state.
void count_writes(const LinearState& state) {
  for (const Tensor& written : {state.s, state.z, state.m})
    if (written.defined()) written.unsafeGetTensorImpl()->bump_version();
}

void step_autograd(const c10::OperatorHandle& op, Stack* stack) {
  StepArguments x;
  read_call(op, *stack, x);
  bool needs_gradient = false;
  each_argument(x, [&](auto& one) {
    if constexpr (std::is_same_v<decltype(one), Tensor&>)
      needs_gradient |= one.defined() && one.requires_grad();
  });
  // A step has no backward pass, and silence would look like a gradient of zero.
  TORCH_CHECK(!at::GradMode::is_enabled() || !needs_gradient, kOp,
              ": expected inputs that need no gradient, got one that does; use "
              "linear_attention_stateful, or no_grad");
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  op.callBoxed(stack);
  count_writes(x.state);
}

}  // namespace

Tensor linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v,
                             const LinearState& state, const LinearOptions& options) {
  // While a model writes, the dispatcher has nothing to add, and its boxes cost as much
  // as a fifth of the step of a small head.
  if (!at::GradMode::is_enabled() && q.device().is_cpu()) {
    const Tensor out = compute({q, k, v, state, options});
    count_writes(state);
    return out;
  }
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      "lagwise::linear_attention_step", "");
  Stack stack;
  write_arguments(StepArguments{q, k, v, state, options}, stack);
  op.callBoxed(&stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) { define(m, kSchema); }
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("linear_attention_step", CppFunction::makeFromBoxedFunction<step_cpu>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("linear_attention_step", CppFunction::makeFromBoxedFunction<step_autograd>());
}

}  // namespace lagwise::ops
