#include "lagwise/kernels/linear_step.h"

#include <ATen/Dispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>

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
      kernels::linear_step<T>(
          q, k, separate ? row(call.q_norm) : q, separate ? key(call.k_norm) : k,
          head_row<const T>(call.v, head), key_decay<T>(call, decay, head), denominator,
          head_view<T>(call.s, head), head_row<T>(out, head), own.data());
    }
  });
}

LinearCall check_step(const Tensor& q, const Tensor& k, const Tensor& v,
                      const Tensor& s, const Tensor& z, const Optional& m,
                      c10::string_view map, const Optional& decay,
                      c10::string_view denominator, const Optional& q_norm,
                      const Optional& k_norm, double eps, c10::string_view eps_mode,
                      const Optional& log_scale) {
  LinearOptions options;
  options.feature_map = std::string(map);
  options.decay = decay.value_or(Tensor());
  options.denominator = std::string(denominator);
  options.q_norm = q_norm.value_or(Tensor());
  options.k_norm = k_norm.value_or(Tensor());
  options.eps = eps;
  options.eps_mode = std::string(eps_mode);
  options.log_scale = log_scale.value_or(Tensor());
  Tensor wide_q = q, wide_k = k, wide_v = v;  // bf16 is storage: computed in f32
  for (Tensor* x : {&wide_q, &wide_k, &wide_v, &options.decay, &options.q_norm,
                    &options.k_norm, &options.log_scale})
    if (x->defined() && x->scalar_type() == at::kBFloat16) *x = x->to(at::kFloat);
  return check_linear(kOp, wide_q, wide_k, wide_v, {s, z, m.value_or(Tensor())},
                      options,
                      /*step=*/true);
}

Tensor step_cpu(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& s, Tensor& z,
                const Optional& m, c10::string_view map, const Optional& decay,
                c10::string_view denominator, const Optional& q_norm,
                const Optional& k_norm, double eps, c10::string_view eps_mode,
                const Optional& log_scale) {
  const auto call = check_step(q, k, v, s, z, m, map, decay, denominator, q_norm,
                               k_norm, eps, eps_mode, log_scale);
  Tensor out = at::empty({call.b, call.h, call.e}, call.q.options());
  const Tensor dense_decay =
      call.decay.defined() ? call.decay.contiguous() : call.decay;
  const Tensor dense_z = z.stride(-1) == 1 || call.f <= 1 ? z : z.contiguous();
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention_step",
                             [&] { step<scalar_t>(call, dense_decay, dense_z, out); });
  if (!dense_z.is_same(z)) z.copy_(dense_z);
  return out.to(q.scalar_type());
}

Tensor step_meta(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& s,
                 Tensor& z, const Optional& m, c10::string_view map,
                 const Optional& decay, c10::string_view denominator,
                 const Optional& q_norm, const Optional& k_norm, double eps,
                 c10::string_view eps_mode, const Optional& log_scale) {
  const auto call = check_step(q, k, v, s, z, m, map, decay, denominator, q_norm,
                               k_norm, eps, eps_mode, log_scale);
  return at::empty({call.b, call.h, call.e}, q.options());
}

auto& step_operator() {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("lagwise::linear_attention_step", "")
                       .typed<decltype(step_cpu)>();
  return op;
}

Tensor step_autograd(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& s,
                     Tensor& z, const Optional& m, c10::string_view map,
                     const Optional& decay, c10::string_view denominator,
                     const Optional& q_norm, const Optional& k_norm, double eps,
                     c10::string_view eps_mode, const Optional& log_scale) {
  const auto needs = [](const Optional& x) { return x && x->requires_grad(); };
  // No gradient would look to a learner like a gradient of zero.
  TORCH_CHECK(!at::GradMode::is_enabled() ||
                  !(needs(q) || needs(k) || needs(v) || needs(s) || needs(z) ||
                    needs(decay) || needs(q_norm) || needs(k_norm) || needs(log_scale)),
              kOp,
              ": expected inputs that need no gradient, got one that does; use "
              "linear_attention_stateful, or no_grad");
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  Tensor out = step_operator().call(q, k, v, s, z, m, map, decay, denominator, q_norm,
                                    k_norm, eps, eps_mode, log_scale);
  s.unsafeGetTensorImpl()->bump_version();
  z.unsafeGetTensorImpl()->bump_version();
  if (m && log_scale) m->unsafeGetTensorImpl()->bump_version();
  return out;
}

}  // namespace

Tensor linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v,
                             const LinearState& state, const LinearOptions& options) {
  const auto optional = [](const Tensor& x) {
    return x.defined() ? Optional(x) : c10::nullopt;
  };
  Tensor s = state.s, z = state.z;
  return step_operator().call(
      q, k, v, s, z, optional(state.m), options.feature_map, optional(options.decay),
      options.denominator, optional(options.q_norm), optional(options.k_norm),
      options.eps, options.eps_mode, optional(options.log_scale));
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "linear_attention_step(Tensor q, Tensor k, Tensor v, Tensor(a!) s, Tensor(b!) z, "
      "Tensor(c!)? m=None, *, str feature_map=\"none\", Tensor? decay=None, str "
      "denominator=\"same\", "
      "Tensor? q_norm=None, Tensor? k_norm=None, float eps=1e-6, "
      "str eps_mode=\"add\", Tensor? log_scale=None) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) { m.impl("linear_attention_step", step_cpu); }
TORCH_LIBRARY_IMPL(lagwise, Meta, m) { m.impl("linear_attention_step", step_meta); }
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("linear_attention_step", step_autograd);
}

}  // namespace lagwise::ops
