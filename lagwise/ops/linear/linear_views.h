#pragma once

#include <cmath>

#include "lagwise/kernels/linear_attention.h"
#include "lagwise/ops/linear/linear_call.h"
#include "lagwise/ops/parallel/heads.h"

namespace lagwise::ops {

/// A head counts over all sequences: sequence * H + h.
inline const Sequence& sequence_of(const LinearCall& call, int64_t head) {
  return call.sequences[static_cast<size_t>(head / call.h)];
}

/// The place of that head in a tensor [B, H, ...].
inline int64_t row_head(const LinearCall& call, int64_t head) {
  return sequence_of(call, head).row * call.h + head % call.h;
}

/// The rows of one sequence and head in a tensor of queries [B, H, N, width].
template <class T>
MatView<T> query_rows(const LinearCall& call, const at::Tensor& x, int64_t head) {
  if (!x.defined()) return {};
  const Sequence& at = sequence_of(call, head);
  return head_view<T>(x, row_head(call, head))
      .slice(at.query_begin, at.query_begin + at.queries);
}

/// The same of keys, [B, H, M, width].
template <class T>
MatView<T> key_rows(const LinearCall& call, const at::Tensor& x, int64_t head) {
  if (!x.defined()) return {};
  const Sequence& at = sequence_of(call, head);
  return head_view<T>(x, row_head(call, head))
      .slice(at.key_begin, at.key_begin + at.keys);
}

/// One number per query, [B, H, N], or per key, [B, H, M], as a column.
template <class T>
MatView<T> query_column(const LinearCall& call, const at::Tensor& x, int64_t head) {
  if (!x.defined()) return {};
  const Sequence& at = sequence_of(call, head);
  return head_column<T>(x, row_head(call, head))
      .slice(at.query_begin, at.query_begin + at.queries);
}
template <class T>
MatView<T> key_column(const LinearCall& call, const at::Tensor& x, int64_t head) {
  if (!x.defined()) return {};
  const Sequence& at = sequence_of(call, head);
  return head_column<T>(x, row_head(call, head))
      .slice(at.key_begin, at.key_begin + at.keys);
}

/// Rows [begin, end) of what a pass reads or writes.
template <class T>
MatView<T> slice_or_empty(MatView<T> x, int64_t begin, int64_t end) {
  return x.data ? x.slice(begin, end) : x;
}
template <class T>
kernels::Rows<T> slice(const kernels::Rows<T>& x, int64_t begin, int64_t end) {
  return {x.x.slice(begin, end), x.map, slice_or_empty(x.scale, begin, end),
          slice_or_empty(x.extra, begin, end)};
}
template <class T>
kernels::Sink<T> slice(const kernels::Sink<T>& x, int64_t begin, int64_t end) {
  return {x.out.slice(begin, end), slice_or_empty(x.at, begin, end), x.map, x.moment};
}

/// x *= factor: what a new maximum does to the past.
template <class T>
void shrink(MatView<T> x, double factor) {
  if (factor == 1.0) return;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.cols; ++j)
      x(i, j) = factor == 0.0 ? T{0} : x(i, j) * static_cast<T>(factor);
}

/// The decay of one head, for a pass whose keys carry the channels.
/// `decay` is call.decay, dense.
template <class T>
kernels::Decay<T> key_decay(const LinearCall& call, const at::Tensor& decay,
                            int64_t head) {
  using By = typename kernels::Decay<T>::By;
  if (call.decay_by == LinearCall::DecayBy::none) return {};
  const bool channel = call.decay_by == LinearCall::DecayBy::channel;
  const int64_t width = channel ? call.d : 1;
  const T* row = decay.data_ptr<T>() + head % call.h * width;
  return {channel ? By::channel : By::head, {row, 1, width, 0, 1}};
}

/// The factor of channel d between row - 1, or the given state, and that row of a head.
template <class T>
T factor_before(const LinearCall& call, const at::Tensor& decay, int64_t head,
                int64_t row, int64_t d) {
  using By = LinearCall::DecayBy;
  if (sequence_of(call, head).keys == 0) return T{1};
  T log = call.log_decay.defined()
              ? query_column<const T>(call, call.log_decay, head)(row, 0)
              : T{0};
  if (call.decay_by != By::none)
    log += key_decay<T>(call, decay, head)
               .log_factor(0, call.decay_by == By::head ? 0 : d);
  return std::exp(log);
}

/// The decay of rows [begin, end) in a pass forwards in time, with their gates [N, 1].
template <class T>
kernels::Decay<T> gated_forwards(kernels::Decay<T> decay, MatView<const T> gates,
                                 int64_t begin, int64_t end) {
  decay.log_gate = slice_or_empty(gates, begin, end);
  return decay;
}

/// The same backwards in time, where row i is reached from row i + 1 through the gate of
/// the latter. Without `before_first` the pass begins at the last row.
template <class T>
kernels::Decay<T> gated_backwards(kernels::Decay<T> decay, MatView<const T> gates,
                                  int64_t begin, int64_t end) {
  if (begin < end)
    decay.log_gate =
        slice_or_empty(gates, begin + 1, decay.before_first ? end + 1 : end).reversed();
  return decay;
}

/// The same for a pass over a strip of columns that are the channels.
template <class T>
kernels::Decay<T> column_decay(const LinearCall& call, const at::Tensor& decay,
                               Strip strip) {
  using By = typename kernels::Decay<T>::By;
  const auto keys = key_decay<T>(call, decay, strip.head);
  if (keys.by != By::channel) return keys;
  return {By::column, keys.log_factor.columns(strip.begin, strip.end)};
}

}  // namespace lagwise::ops
