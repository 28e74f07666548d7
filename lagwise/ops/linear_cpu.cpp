#include "lagwise/ops/linear_cpu.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lagwise/ops/linear_views.h"

namespace lagwise::ops {
namespace {

using kernels::Denominator;
using kernels::Rows;
using kernels::Sink;
using Divide = LinearCall::Divide;

/// The given state, copied dense, or zeros.
at::Tensor start(const at::Tensor& given, at::IntArrayRef sizes,
                 const at::TensorOptions& options) {
  auto x = at::zeros(sizes, options);
  if (given.defined()) x.copy_(given);
  return x;
}

template <class T>
Denominator<T> from_features(const LinearCall& call, MatView<T> den, T* z) {
  return {Denominator<T>::From::features, static_cast<T>(call.eps), call.clamp, den, z};
}

/// den_i = q_norm_i . z_i of every head: attention over no values at all.
template <class T>
void separate_denominator(const LinearCall& call, const at::Tensor& decay,
                          LinearForward& to) {
  const int64_t scratch = kernels::linear_scratch<T>(call.f, 0);
  for_each_strip<T>(call.b * call.h, 0, scratch, [&](Strip strip, T* own) {
    const Rows<T> q{head_view<const T>(call.q_norm, strip.head), call.map};
    const Rows<T> k{head_view<const T>(call.k_norm, strip.head), call.map};
    const Rows<T> none{{nullptr, call.m, 0, 0, 1}};
    const Sink<T> nowhere{{nullptr, call.n, 0, 0, 1}};
    const MatView<T> empty{nullptr, call.f, 0, 0, 1};
    T* const z = head_column<T>(to.z, strip.head).data;
    const auto divide = from_features(call, head_column<T>(to.den, strip.head), z);
    if (call.causal) {
      const auto fade = key_decay<T>(call, decay, strip.head);
      kernels::causal_linear<T>(q, k, none, fade, divide, empty, nowhere, own);
    } else {
      kernels::absorb<T>(k, none, empty, z, own);
      kernels::read_state<T>(q, divide, empty, nowhere, own);
    }
  });
}

template <class T>
void forward(const LinearCall& call, const at::Tensor& decay, LinearForward& to) {
  if (call.divide == Divide::separate) separate_denominator<T>(call, decay, to);
  const at::Tensor z_start = call.divide == Divide::same && call.z.defined()
                                 ? call.z.contiguous()
                                 : at::Tensor();
  const int64_t scratch = kernels::linear_scratch<T>(call.d, call.e);
  const auto body = [&](Strip strip, T* own) {
    const auto columns = [&](auto view) {
      return view.columns(strip.begin, strip.end);
    };
    const Rows<T> q{head_view<const T>(call.q, strip.head), call.map};
    const Rows<T> k{head_view<const T>(call.k, strip.head), call.map};
    const Rows<T> v{columns(head_view<const T>(call.v, strip.head))};
    const MatView<T> s = columns(head_view<T>(to.s, strip.head));
    const Sink<T> sink{columns(head_view<T>(to.out, strip.head))};

    // Every strip needs the denominator; the first one also hands it on.
    Denominator<T> divide;
    T* const z = own + scratch;
    const auto den = head_column<T>(to.den, strip.head);
    if (call.divide == Divide::same) {
      std::fill_n(z, call.d, T{0});
      if (z_start.defined())
        std::copy_n(head_column<T>(z_start, strip.head).data, call.d, z);
      divide = from_features(call, strip.first() ? den : MatView<T>{}, z);
    }
    if (call.divide == Divide::separate)
      divide = {Denominator<T>::From::given, 0, false, den};

    if (call.causal) {
      const auto fade = key_decay<T>(call, decay, strip.head);
      kernels::causal_linear<T>(q, k, v, fade, divide, s, sink, own);
    } else {
      kernels::absorb<T>(k, v, s, divide.z, own);
      kernels::read_state<T>(q, divide, s, sink, own);
    }
    if (call.divide == Divide::same && strip.first())
      std::copy_n(z, call.d, head_column<T>(to.z, strip.head).data);
  };
  for_each_strip<T>(call.b * call.h, call.e, scratch + call.d, body);
}

}  // namespace

LinearForward linear_forward_cpu(const LinearCall& call) {
  const auto options = call.q.options();
  LinearForward to;
  to.out = at::empty({call.b, call.h, call.n, call.e}, options);
  to.s = start(call.s, {call.b, call.h, call.d, call.e}, options);
  to.z = start(call.divide == Divide::separate ? call.z : at::Tensor(),
               {call.b, call.h, call.f}, options);
  const int64_t dens = call.divide == Divide::none ? 0 : call.n;
  to.den = at::empty({call.b, call.h, dens}, options);
  const at::Tensor decay = call.decay.defined() ? call.decay.contiguous() : call.decay;
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention",
                             [&] { forward<scalar_t>(call, decay, to); });
  return to;
}

}  // namespace lagwise::ops
