#include "lagwise/kernels/linear_step.h"

#include <ATen/Dispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "lagwise/ops/linear_views.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::Denominator;
using kernels::Rows;
using Divide = LinearCall::Divide;
using Optional = c10::optional<Tensor>;

constexpr const char* kOp = "linear_attention_step";

/// A [B, H, width] tensor at one head, as a row.
template <class T>
MatView<T> head_row(const Tensor& x, int64_t head) {
  return head_column<T>(x, head).transposed();
}

template <class T>
void step(const LinearCall& call, const Tensor& decay, const Tensor& z, Tensor& out) {
  // Waking a thread can cost more than a small step: only beyond about 1 MB of state.
  const int64_t grain = 1 + (1 << 20) / (1 + call.d * call.e * int64_t{sizeof(T)});
  const bool divides = call.divide != Divide::none;
  const bool separate = call.divide == Divide::separate;
  const int64_t scratch = kernels::linear_step_scratch<T>(call.d, call.f);
  at::parallel_for(0, call.b * call.h, grain, [&](int64_t begin, int64_t end) {
    std::vector<T> own(static_cast<size_t>(scratch));
    for (int64_t head = begin; head < end; ++head) {
      const auto row = [&](const Tensor& x) {
        return Rows<T>{head_row<const T>(x, head), call.map};
      };
      const Rows<T> q = row(call.q), k = row(call.k);
      Denominator<T> denominator;
      if (divides)
        denominator = {Denominator<T>::From::features,
                       static_cast<T>(call.eps),
                       call.clamp,
                       {},
                       head_column<T>(z, head).data};
      kernels::linear_step<T>(
          q, k, separate ? row(call.q_norm) : q, separate ? row(call.k_norm) : k,
          head_row<const T>(call.v, head), key_decay<T>(call, decay, head), denominator,
          head_view<T>(call.s, head), head_row<T>(out, head), own.data());
    }
  });
}

LinearCall check_step(const Tensor& q, const Tensor& k, const Tensor& v,
                      const Tensor& s, const Tensor& z, c10::string_view map,
                      const Optional& decay, c10::string_view denominator,
                      const Optional& q_norm, const Optional& k_norm, double eps,
                      c10::string_view eps_mode) {
  LinearOptions options;
  options.feature_map = std::string(map);
  options.decay = decay.value_or(Tensor());
  options.denominator = std::string(denominator);
  options.q_norm = q_norm.value_or(Tensor());
  options.k_norm = k_norm.value_or(Tensor());
  options.eps = eps;
  options.eps_mode = std::string(eps_mode);
  return check_linear(kOp, q, k, v, {s, z}, options, /*step=*/true);
}

Tensor step_cpu(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& s, Tensor& z,
                c10::string_view map, const Optional& decay,
                c10::string_view denominator, const Optional& q_norm,
                const Optional& k_norm, double eps, c10::string_view eps_mode) {
  const auto call =
      check_step(q, k, v, s, z, map, decay, denominator, q_norm, k_norm, eps, eps_mode);
  Tensor out = at::empty({call.b, call.h, call.e}, q.options());
  const Tensor dense_decay =
      call.decay.defined() ? call.decay.contiguous() : call.decay;
  const Tensor dense_z = z.stride(-1) == 1 || call.f <= 1 ? z : z.contiguous();
  AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "linear_attention_step",
                             [&] { step<scalar_t>(call, dense_decay, dense_z, out); });
  if (!dense_z.is_same(z)) z.copy_(dense_z);
  return out;
}

Tensor step_meta(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& s,
                 Tensor& z, c10::string_view map, const Optional& decay,
                 c10::string_view denominator, const Optional& q_norm,
                 const Optional& k_norm, double eps, c10::string_view eps_mode) {
  const auto call =
      check_step(q, k, v, s, z, map, decay, denominator, q_norm, k_norm, eps, eps_mode);
  return at::empty({call.b, call.h, call.e}, q.options());
}

auto& step_operator() {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("lagwise::linear_attention_step", "")
                       .typed<decltype(step_cpu)>();
  return op;
}

Tensor step_autograd(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& s,
                     Tensor& z, c10::string_view map, const Optional& decay,
                     c10::string_view denominator, const Optional& q_norm,
                     const Optional& k_norm, double eps, c10::string_view eps_mode) {
  const auto needs = [](const Optional& x) { return x && x->requires_grad(); };
  // No gradient would look to a learner like a gradient of zero.
  TORCH_CHECK(!at::GradMode::is_enabled() ||
                  !(needs(q) || needs(k) || needs(v) || needs(s) || needs(z) ||
                    needs(decay) || needs(q_norm) || needs(k_norm)),
              kOp,
              ": expected inputs that need no gradient, got one that does; use "
              "linear_attention_stateful, or no_grad");
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  Tensor out = step_operator().call(q, k, v, s, z, map, decay, denominator, q_norm,
                                    k_norm, eps, eps_mode);
  s.unsafeGetTensorImpl()->bump_version();
  z.unsafeGetTensorImpl()->bump_version();
  return out;
}

}  // namespace

Tensor linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v,
                             const LinearState& state, const LinearOptions& options) {
  const auto optional = [](const Tensor& x) {
    return x.defined() ? Optional(x) : c10::nullopt;
  };
  Tensor s = state.s, z = state.z;
  return step_operator().call(q, k, v, s, z, options.feature_map,
                              optional(options.decay), options.denominator,
                              optional(options.q_norm), optional(options.k_norm),
                              options.eps, options.eps_mode);
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "linear_attention_step(Tensor q, Tensor k, Tensor v, Tensor(a!) s, Tensor(b!) z, "
      "*, "
      "str feature_map=\"none\", Tensor? decay=None, str denominator=\"same\", "
      "Tensor? q_norm=None, Tensor? k_norm=None, float eps=1e-6, "
      "str eps_mode=\"add\") -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) { m.impl("linear_attention_step", step_cpu); }
TORCH_LIBRARY_IMPL(lagwise, Meta, m) { m.impl("linear_attention_step", step_meta); }
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("linear_attention_step", step_autograd);
}

}  // namespace lagwise::ops
