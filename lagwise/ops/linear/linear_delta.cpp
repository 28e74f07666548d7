#include "lagwise/ops/linear/linear_delta.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lagwise/kernels/delta_rule.h"
#include "lagwise/ops/linear/linear_views.h"
#include "lagwise/ops/torch/rows_first.h"

namespace lagwise::ops {
namespace {

template <class T>
kernels::DeltaInputs<T> delta_inputs(const LinearCall& call, const at::Tensor& decay,
                                     int64_t head) {
  kernels::DeltaInputs<T> in{{query_rows<const T>(call, call.q, head)},
                             {key_rows<const T>(call, call.k, head)},
                             {key_rows<const T>(call, call.v, head)},
                             key_column<const T>(call, call.write_strength, head),
                             key_decay<T>(call, decay, head),
                             head_view<const T>(call.s, head)};
  in.decay.log_gate = key_column<const T>(call, call.log_decay, head);
  return in;
}

template <class T>
void delta_strips(const LinearCall& call, const at::Tensor& decay,
                  const LinearForward& to) {
  for_each_strip<T>(call.heads(), call.e, kernels::delta_scratch<T>(call.d, call.e),
                    [&](Strip strip, T* own) {
                      const auto columns = [&](auto view) {
                        return view.columns(strip.begin, strip.end);
                      };
                      const auto in = delta_inputs<T>(call, decay, strip.head);
                      kernels::delta_linear<T>(
                          in.q, in.k, {columns(in.v.x)}, in.write_strength, in.decay,
                          columns(head_view<T>(to.s, strip.head)),
                          {columns(query_rows<T>(call, to.out, strip.head))}, own);
                    });
}

template <class T>
void delta_heads(const LinearCall& call, const at::Tensor& decay,
                 const at::Tensor& d_out, const LinearGradients& to) {
  int64_t longest = 0;
  for (const Sequence& rows : call.sequences) longest = std::max(longest, rows.keys);
  for_each_task<T>(
      call.heads(), kernels::delta_gradient_scratch<T>(longest, call.d, call.e),
      [&](int64_t head, T* own) {
        kernels::delta_gradient<T>(delta_inputs<T>(call, decay, head),
                                   {query_rows<const T>(call, d_out, head)},
                                   {{query_rows<T>(call, to.q, head)},
                                    {key_rows<T>(call, to.k, head)},
                                    {key_rows<T>(call, to.v, head)},
                                    key_column<T>(call, to.write_strength, head),
                                    key_column<T>(call, to.log_decay, head),
                                    head_view<T>(to.s, head)},
                                   own);
      });
}

at::Tensor dense_decay(const LinearCall& call) {
  return call.decay.defined() ? call.decay.contiguous() : call.decay;
}

}  // namespace

void delta_forward_cpu(const LinearCall& call, const LinearForward& to) {
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention", [&] {
    delta_strips<scalar_t>(call, dense_decay(call), to);
  });
}

LinearGradients delta_backward_cpu(const LinearCall& call, const LinearForward& saved,
                                   const LinearCotangents& cotangents) {
  const auto options = call.q.options();
  const auto like = [&](const at::Tensor& x) {
    const at::Tensor made = empty_in_order(x);
    return call.ragged ? made.zero_() : made;
  };
  const at::Tensor d_out = cotangents.out.defined()
                               ? cotangents.out
                               : at::zeros({1}, options).expand(saved.out.sizes());
  LinearGradients to;
  to.q = like(call.q), to.k = like(call.k), to.v = like(call.v);
  to.write_strength = like(call.write_strength);
  to.s = at::zeros(saved.s.sizes(), options);
  if (cotangents.s.defined()) to.s.copy_(cotangents.s);
  to.z = at::zeros(saved.z.sizes(), options);
  if (cotangents.log_decay || cotangents.decay)
    to.log_decay = like(call.write_strength);
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention", [&] {
    delta_heads<scalar_t>(call, dense_decay(call), d_out, to);
  });
  // A decay per head fades as if added to every gate.
  if (cotangents.decay)
    to.decay = to.log_decay.sum(at::IntArrayRef{0, 2}, false, at::kDouble)
                   .to(call.q.scalar_type());
  return to;
}

}  // namespace lagwise::ops
