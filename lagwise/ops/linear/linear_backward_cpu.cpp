#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "lagwise/kernels/denominator_gradient.h"
#include "lagwise/ops/linear/linear_backward-inl.h"
#include "lagwise/ops/linear/linear_delta.h"
#include "lagwise/ops/torch/rows_first.h"

namespace lagwise::ops {
namespace {

using Divide = LinearCall::Divide;

/// Through the division of one head: fills inverse and d_den of the pairs.
template <class T>
void through_division(const LinearCall& call, const LinearForward& saved,
                      const at::Tensor& d_out, const at::Tensor& inverse,
                      const at::Tensor& d_den, int64_t head) {
  const T floor =
      call.clamp ? static_cast<T>(call.eps) : -std::numeric_limits<T>::infinity();
  kernels::denominator_gradient<T>(query_rows<const T>(call, d_out, head),
                                   query_rows<const T>(call, saved.out, head),
                                   query_column<const T>(call, saved.den, head), floor,
                                   query_column<T>(call, inverse, head),
                                   query_column<T>(call, d_den, head));
}

/// The gradient of the decay in its own shape, [H] or [H, D].
at::Tensor decay_gradient(const LinearCall& call, const Pair& pair) {
  const at::Tensor& sum = pair.d_decay;
  return call.decay_by == DecayBy::channel ? sum.sum(0)
                                           : sum.sum(at::IntArrayRef{0, 2});
}

/// The passes give the gradient of weight_j k_j. Turns it into that of k_j, in place,
/// and returns that of log_scale_j, which is k_j . dk_j.
at::Tensor through_weights(const RunningMax& max, const Pair& pair) {
  pair.d_k.mul_(max.weight.unsqueeze(-1));
  return (pair.k * pair.d_k).sum(-1);
}

}  // namespace

LinearGradients linear_backward_cpu(const LinearCall& call, const LinearForward& saved,
                                    const LinearCotangents& cotangents) {
  if (call.write_strength.defined()) return delta_backward_cpu(call, saved, cotangents);
  const auto options = call.q.options();
  const auto like = [&](const at::Tensor& x) {
    const at::Tensor made = empty_in_order(x);
    return call.ragged ? made.zero_() : made;
  };
  const bool divides = call.divide != Divide::none;
  const bool separate = call.divide == Divide::separate;
  const at::Tensor d_out = cotangents.out.defined()
                               ? cotangents.out
                               : at::zeros({1}, options).expand(saved.out.sizes());

  Pair main;
  main.q = call.q, main.d_q = like(call.q);
  main.k = call.k, main.d_k = like(call.k);
  main.v = call.v, main.d_v = like(call.v), main.d_out = d_out;
  main.s0 = call.s, main.s1 = saved.s, main.d_s1 = cotangents.s;
  main.d_s0 = at::zeros(saved.s.sizes(), options);
  Pair norm;
  Pair& divisor = separate ? norm : main;
  if (separate) {
    norm.q = call.q_norm, norm.d_q = like(call.q_norm);
    norm.k = call.k_norm, norm.d_k = like(call.k_norm);
  }
  if (divides) {
    main.inverse = like(saved.den);
    divisor.d_den = like(saved.den);
    divisor.z0 = call.z, divisor.z1 = saved.z, divisor.d_z1 = cotangents.z;
  }
  divisor.d_z0 = at::zeros(saved.z.sizes(), options);
  // With gates, a decay per head fades as if added to every gate.
  const bool by_gates = call.log_decay.defined() && call.decay_by != DecayBy::channel;
  if (call.log_decay.defined() &&
      (cotangents.log_decay || (cotangents.decay && by_gates)))
    main.d_gate = norm.d_gate = at::zeros({call.b, call.h, call.n}, options);
  if (cotangents.decay && !by_gates) {
    main.d_decay = at::zeros({call.states(), call.h, call.d}, at::kDouble);
    if (separate)
      norm.d_decay = at::zeros({call.states(), call.h, call.f}, at::kDouble);
  }

  const RunningMax max = running_max(call);
  const at::Tensor decay = call.decay.defined() ? call.decay.contiguous() : call.decay;
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention", [&] {
    Backward<scalar_t>(call, decay, max, main).run([&](int64_t head) {
      if (divides)
        through_division<scalar_t>(call, saved, d_out, main.inverse, divisor.d_den,
                                   head);
    });
    if (separate) Backward<scalar_t>(call, decay, max, norm).run([](int64_t) {});
  });

  LinearGradients to;
  if (max.any()) {
    to.log_scale = through_weights(max, main);
    if (separate) to.log_scale.add_(through_weights(max, norm));
  }
  to.q = main.d_q, to.k = main.d_k, to.v = main.d_v;
  to.q_norm = norm.d_q, to.k_norm = norm.d_k;
  to.s = main.d_s0, to.z = divisor.d_z0;
  to.log_decay = main.d_gate;
  if (cotangents.decay && by_gates)
    to.decay = main.d_gate.sum(at::IntArrayRef{0, 2}, false, at::kDouble)
                   .to(call.q.scalar_type());
  if (cotangents.decay && !by_gates) {
    to.decay = decay_gradient(call, main);
    if (separate) to.decay = to.decay + decay_gradient(call, norm);
    to.decay = to.decay.to(call.q.scalar_type());
  }
  return to;
}

}  // namespace lagwise::ops
