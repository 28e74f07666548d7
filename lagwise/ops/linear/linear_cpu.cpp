#include "lagwise/ops/linear/linear_cpu.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lagwise/ops/linear/linear_delta.h"
#include "lagwise/ops/linear/linear_views.h"
#include "lagwise/ops/linear/running_max.h"
#include "lagwise/ops/torch/rows_first.h"

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

/// One head of one sequence, forwards: queries, keys, values, and where results go.
template <class T>
struct Pass {
  Rows<T> q, k, v;
  kernels::Decay<T> decay;
  Denominator<T> denominator;
  MatView<T> s;
  Sink<T> sink;
  MatView<const T> gates = {};
};

/// Runs a pass, shrinking the past wherever a new maximum begins.
template <class T>
void run_pass(const Pass<T>& pass, bool causal, const std::vector<Run>& runs, T* own) {
  const MatView<T> z{pass.denominator.z, 1, pass.denominator.z ? pass.k.x.cols : 0};
  for (const auto& [begin, end, factor] : runs) {
    shrink(pass.s, factor);
    shrink(z, factor);
    if (!causal) {
      kernels::absorb<T>(pass.k, pass.v, pass.s, pass.denominator.z, own);
      kernels::read_state<T>(pass.q, pass.denominator, pass.s, pass.sink, own);
      return;
    }
    Denominator<T> divide = pass.denominator;
    divide.den = slice_or_empty(divide.den, begin, end);
    kernels::causal_linear<T>(slice(pass.q, begin, end), slice(pass.k, begin, end),
                              slice(pass.v, begin, end),
                              gated_forwards(pass.decay, pass.gates, begin, end),
                              divide, pass.s, slice(pass.sink, begin, end), own);
  }
}

template <class T>
class Forward {
 public:
  Forward(const LinearCall& call, const at::Tensor& decay, const RunningMax& max,
          LinearForward& to)
      : call_(call), decay_(decay), max_(max), to_(to) {}

  void run() {
    if (call_.divide == Divide::separate) separate_denominator();
    const at::Tensor z_start = call_.divide == Divide::same && call_.z.defined()
                                   ? call_.z.contiguous()
                                   : at::Tensor();
    const int64_t scratch = kernels::linear_scratch<T>(call_.d, call_.e);
    for_each_strip<T>(
        call_.heads(), call_.e, scratch + call_.d,
        [&](Strip strip, T* own) { weigh_values(strip, z_start, own, own + scratch); });
  }

 private:
  Rows<T> queries(const at::Tensor& x, int64_t head) const {
    return {query_rows<const T>(call_, x, head), call_.map};
  }
  Rows<T> keys(const at::Tensor& x, int64_t head) const {
    return {key_rows<const T>(call_, x, head), call_.map,
            key_column<const T>(call_, max_.weight, head)};
  }
  MatView<const T> gates(int64_t head) const {
    return query_column<const T>(call_, call_.log_decay, head);
  }
  const std::vector<Run>& runs(int64_t head) const {
    return max_.heads[static_cast<size_t>(head)];
  }

  /// den_i = q_norm_i . z_i of every head: attention over no values at all.
  void separate_denominator() {
    const int64_t scratch = kernels::linear_scratch<T>(call_.f, 0);
    for_each_strip<T>(call_.heads(), 0, scratch, [&](Strip strip, T* own) {
      const int64_t head = strip.head;
      const Sequence& rows = sequence_of(call_, head);
      run_pass<T>({queries(call_.q_norm, head),
                   keys(call_.k_norm, head),
                   {{nullptr, rows.keys, 0, 0, 1}},
                   key_decay<T>(call_, decay_, head),
                   from_features(call_, query_column<T>(call_, to_.den, head),
                                 head_column<T>(to_.z, head).data),
                   {nullptr, call_.f, 0, 0, 1},
                   {{nullptr, rows.queries, 0, 0, 1}},
                   gates(head)},
                  call_.causal, runs(head), own);
    });
  }

  /// The values of one strip. Every strip needs the denominator of the same features
  /// (z holds its state); the first one also hands it on.
  void weigh_values(Strip strip, const at::Tensor& z_start, T* own, T* z) {
    const int64_t head = strip.head;
    const auto columns = [&](auto view) {
      return view.columns(strip.begin, strip.end);
    };
    Denominator<T> divide;
    if (call_.divide == Divide::same) {
      std::fill_n(z, call_.d, T{0});
      if (z_start.defined())
        std::copy_n(head_column<T>(z_start, head).data, call_.d, z);
      divide = from_features(
          call_, strip.first() ? query_column<T>(call_, to_.den, head) : MatView<T>{},
          z);
    }
    if (call_.divide == Divide::separate)
      divide = {Denominator<T>::From::given, 0, false,
                query_column<T>(call_, to_.den, head)};
    run_pass<T>({queries(call_.q, head),
                 keys(call_.k, head),
                 {columns(key_rows<const T>(call_, call_.v, head))},
                 key_decay<T>(call_, decay_, head),
                 divide,
                 columns(head_view<T>(to_.s, head)),
                 {columns(query_rows<T>(call_, to_.out, head))},
                 gates(head)},
                call_.causal, runs(head), own);
    if (call_.divide == Divide::same && strip.first())
      std::copy_n(z, call_.d, head_column<T>(to_.z, head).data);
  }

  const LinearCall& call_;
  const at::Tensor& decay_;
  const RunningMax& max_;
  LinearForward& to_;
};

}  // namespace

LinearForward linear_forward_cpu(const LinearCall& call) {
  const auto options = call.q.options();
  const auto rows = [&](at::IntArrayRef sizes) {
    const at::Tensor made = empty_in_order(sizes, call.v);
    return call.ragged ? made.zero_() : made;
  };
  const RunningMax max = running_max(call);
  LinearForward to;
  to.out = rows({call.b, call.h, call.n, call.e});
  to.s = start(call.s, {call.states(), call.h, call.d, call.e}, options);
  to.z = start(call.divide == Divide::separate ? call.z : at::Tensor(),
               {call.states(), call.h, call.f}, options);
  to.den = rows({call.b, call.h, call.divide == Divide::none ? 0 : call.n});
  to.max = max.any() ? max.last : at::empty({call.states(), call.h, 0}, options);
  if (call.write_strength.defined()) {
    delta_forward_cpu(call, to);
    return to;
  }
  const at::Tensor decay = call.decay.defined() ? call.decay.contiguous() : call.decay;
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention",
                             [&] { Forward<scalar_t>(call, decay, max, to).run(); });
  return to;
}

}  // namespace lagwise::ops
