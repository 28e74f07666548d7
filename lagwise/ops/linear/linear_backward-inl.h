#pragma once

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "lagwise/kernels/decay_gradient.h"
#include "lagwise/kernels/key_value_gradient.h"
#include "lagwise/ops/linear/linear_gate_gradient.h"
#include "lagwise/ops/linear/linear_views.h"

/// The passes of the backward of linear attention, for linear_backward_cpu.cpp alone.
namespace lagwise::ops {

using kernels::Rows;
using kernels::Sink;
using DecayBy = LinearCall::DecayBy;

template <class T>
class Backward {
 public:
  Backward(const LinearCall& call, const at::Tensor& decay, const RunningMax& max,
           const Pair& pair)
      : call_(call),
        decay_(decay),
        max_(max),
        pair_(pair),
        d_(pair.q.size(3)),
        width_(pair.width()),
        state_size_(width_ * d_),
        gate_gradient_(call, decay, max, pair) {}

  /// `prepare(head)` computes 1 / den and d_den of one head; called before its passes.
  template <class Prepare>
  void run(const Prepare& prepare) {
    const bool whole = fused() || gate_gradient_.wanted() ||
                       (strips_per_head(heads(), d_) == 1 &&
                        strips_per_head(heads(), pair_.value_width()) == 1);
    if (call_.causal && pair_.d_s1.defined()) pair_.d_s0.copy_(pair_.d_s1);
    if (call_.causal && whole) return run_head_by_head(prepare);
    at::parallel_for(0, heads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) prepare(head);
    });
    call_.causal ? run_in_strips() : run_full();
  }

 private:
  int64_t heads() const { return call_.heads(); }

  /// Whether dk and dv come from one pass. It saves a sixth of the work but cannot be
  /// cut into strips, so a few heads could not fill the threads with it. The results
  /// differ in their last bits, so the choice must not depend on the thread count.
  bool fused() const {
    constexpr int64_t kEnoughHeads = 4;
    return call_.causal && pair_.v.defined() && heads() >= kEnoughHeads &&
           call_.decay_by != DecayBy::channel && !max_.any();
  }

  Rows<T> gradient(int64_t head) const {
    MatView<const T> x{nullptr, sequence_of(call_, head).queries, 0, 0, 1};
    if (pair_.d_out.defined()) x = query_rows<const T>(call_, pair_.d_out, head);
    return {x,
            {},
            query_column<const T>(call_, pair_.inverse, head),
            query_column<const T>(call_, pair_.d_den, head)};
  }
  Rows<T> values(int64_t head) const {
    const int64_t rows = sequence_of(call_, head).keys;
    const MatView<const T> ones{&one_, rows, 1, 0, 1};
    MatView<const T> x{nullptr, rows, 0, 0, 1};
    if (pair_.v.defined()) x = key_rows<const T>(call_, pair_.v, head);
    return {x, {}, {}, pair_.d_den.defined() ? ones : MatView<const T>{}};
  }
  Rows<T> queries(int64_t head) const {
    return {query_rows<const T>(call_, pair_.q, head), call_.map};
  }
  Rows<T> keys(int64_t head) const {
    return {key_rows<const T>(call_, pair_.k, head), call_.map,
            key_column<const T>(call_, max_.weight, head)};
  }

  MatView<const T> gates(int64_t head) const {
    return query_column<const T>(call_, call_.log_decay, head);
  }
  const std::vector<Run>& runs(int64_t head) const { return gate_gradient_.runs(head); }

  static Rows<T> reversed(const Rows<T>& x) {
    return {x.x.reversed(), x.map, x.scale.reversed(), x.extra.reversed()};
  }
  static Sink<T> reversed(const Sink<T>& x) {
    return {x.out.reversed(), x.at.reversed(), x.map, x.moment};
  }
  static Rows<T> columns(const Rows<T>& x, Strip strip) {
    return {x.x.columns(strip.begin, strip.end), x.map, x.scale, {}};
  }

  /// Where a pass writes: the gradient of features times the slope of the feature map.
  Sink<T> sink(MatView<T> to, MatView<const T> at, Strip strip) const {
    Sink<T> sink{to.columns(strip.begin, strip.end)};
    if (call_.map.kind == kernels::FeatureMap::Kind::none) return sink;
    sink.at = at.columns(strip.begin, strip.end);
    sink.map = call_.map;
    return sink;
  }
  Sink<T> query_sink(Strip strip) const {
    return sink(query_rows<T>(call_, pair_.d_q, strip.head),
                query_rows<const T>(call_, pair_.q, strip.head), strip);
  }
  Sink<T> key_sink(Strip strip) const {
    return sink(key_rows<T>(call_, pair_.d_k, strip.head),
                key_rows<const T>(call_, pair_.k, strip.head), strip);
  }

  /// A pass forwards in time, run by run (running_max.h): the state shrinks before it.
  /// `after(run)` is called after each.
  template <class After>
  void pass_forwards(int64_t head, const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                     const kernels::Decay<T>& decay, MatView<T> state,
                     const Sink<T>& sink, T* own, const After& after) const {
    for (size_t run = 0; run < runs(head).size(); ++run) {
      const auto [begin, end, factor] = runs(head)[run];
      shrink(state, factor);
      kernels::causal_linear<T>(slice(q, begin, end), slice(k, begin, end),
                                slice(v, begin, end),
                                gated_forwards(decay, gates(head), begin, end), {},
                                state, slice(sink, begin, end), own);
      after(run);
    }
  }

  /// Backwards in time, last run first: pass(run, begin, end, decay) and then
  /// shrink(factor), as the state does.
  template <class Pass, class Shrink>
  void each_run_backwards(int64_t head, kernels::Decay<T> decay, const Pass& pass,
                          const Shrink& shrink) const {
    decay.before_first = false;  // the state given stands at the last row
    for (size_t run = runs(head).size(); run-- > 0;) {
      const auto [begin, end, factor] = runs(head)[run];
      pass(run, begin, end, gated_backwards(decay, gates(head), begin, end));
      shrink(factor);
      decay.before_first = true;
    }
  }
  void pass_backwards(int64_t head, const Rows<T>& q, const Rows<T>& k,
                      const Rows<T>& v, const kernels::Decay<T>& decay,
                      MatView<T> state, const Sink<T>& sink, T* own,
                      const T* marks = nullptr) const {
    each_run_backwards(
        head, decay,
        [&](size_t run, int64_t begin, int64_t end, const kernels::Decay<T>& fade) {
          const double after =
              marks ? gate_gradient_.meet(head, run, marks, state.transposed(), {})
                    : 0.0;
          kernels::causal_linear<T>(reversed(slice(q, begin, end)),
                                    reversed(slice(k, begin, end)),
                                    reversed(slice(v, begin, end)), fade, {}, state,
                                    reversed(slice(sink, begin, end)), own);
          if (marks) gate_gradient_.add_rows(head, begin, end, after);
        },
        [&](double factor) { shrink(state, factor); });
  }

  /// Where the states of the query pass are kept for the gates; null: not wanted.
  T* marks_in(T* own) const {
    return gate_gradient_.wanted() ? own + scratch() + state_size_ : nullptr;
  }

  /// to [rows, strip] = [s^T | z].
  void fill(const at::Tensor& s, const at::Tensor& z, Strip strip,
            MatView<T> to) const {
    const auto from = head_view<const T>(s, strip.head);
    const auto last = head_column<const T>(z, strip.head);
    for (int64_t d = 0; d < to.cols; ++d) {
      const int64_t at = strip.begin + d;
      for (int64_t e = 0; e < pair_.value_width(); ++e)
        to(e, d) = from.data ? from(at, e) : T{0};
      if (pair_.d_den.defined()) to(width_ - 1, d) = last.data ? last(at, 0) : T{0};
    }
  }

  int64_t scratch() const {
    const int64_t values = pair_.value_width();
    return std::max({kernels::linear_scratch<T>(width_, d_),
                     kernels::linear_scratch<T>(d_, values),
                     fused() ? kernels::key_value_gradient_scratch<T>(d_, values) : 0});
  }

  /// The state of a pass whose keys have the width of values, [width, strip], which lies
  /// in memory as [strip, width].
  MatView<T> turned_state(T* own, Strip strip) const {
    return {own + scratch(), width_, strip.end - strip.begin, 1, width_};
  }

  // dq_i = sum_{j <= i} g^(i-j) ([d_out_i | d_den_i] . [v_j | 1]) k_j
  void query_pass(Strip strip, T* own) const {
    const MatView<T> state = turned_state(own, strip);
    fill(pair_.s0, pair_.z0, strip, state);
    pass_forwards(strip.head, gradient(strip.head), values(strip.head),
                  columns(keys(strip.head), strip),
                  column_decay<T>(call_, decay_, strip), state, query_sink(strip), own,
                  [&](size_t run) {
                    if (T* const marks = marks_in(own))
                      std::copy_n(state.data, state_size_,
                                  marks + static_cast<int64_t>(run) * state_size_);
                  });
  }

  // dk_j = sum_{i >= j} g^(i-j) ([v_j | 1] . [d_out_i | d_den_i]) q_i
  void key_pass(Strip strip, T* own) const {
    const MatView<T> state = turned_state(own, strip);
    fill(pair_.d_s1, pair_.d_z1, strip, state);
    pass_backwards(strip.head, values(strip.head), gradient(strip.head),
                   columns(queries(strip.head), strip),
                   column_decay<T>(call_, decay_, strip), state, key_sink(strip), own,
                   marks_in(own));
    if (!pair_.d_den.defined()) return;
    const auto d_z0 = head_column<T>(pair_.d_z0, strip.head);
    for (int64_t d = strip.begin; d < strip.end; ++d)
      d_z0(d, 0) = factor_before<T>(call_, decay_, strip.head, 0, d) *
                   state(width_ - 1, d - strip.begin);
  }

  // dv_j = sum_{i >= j} g^(i-j) (k_j . q_i) d_out_i / den_i
  void value_pass(Strip strip, T* own) const {
    const auto cut = [&](auto view) { return view.columns(strip.begin, strip.end); };
    const MatView<T> state = cut(head_view<T>(pair_.d_s0, strip.head));  // holds d_s1
    pass_backwards(strip.head, keys(strip.head), queries(strip.head),
                   columns(gradient(strip.head), strip),
                   key_decay<T>(call_, decay_, strip.head), state,
                   {cut(key_rows<T>(call_, pair_.d_v, strip.head))}, own);
    fade_to_first(strip.head, state);
  }

  /// From R_0, which stands at the first row, to the gradient of the given state.
  void fade_to_first(int64_t head, MatView<T> state) const {
    for (int64_t d = 0; d < state.rows; ++d) {
      const T factor = factor_before<T>(call_, decay_, head, 0, d);
      for (int64_t e = 0; e < state.cols; ++e) state(d, e) *= factor;
    }
  }

  /// key_pass and value_pass of a whole head at once.
  void key_value_pass(int64_t head, T* own) const {
    const Strip all{head, 0, d_};
    const MatView<T> state = head_view<T>(pair_.d_s0, head);  // holds d_s1
    MatView<T> r{};
    if (pair_.d_den.defined()) {
      r = head_column<T>(pair_.d_z0, head);
      const auto last = head_column<const T>(pair_.d_z1, head);
      for (int64_t d = 0; d < d_; ++d) r(d, 0) = last.data ? last(d, 0) : T{0};
    }
    each_run_backwards(
        head, key_decay<T>(call_, decay_, head),
        [&](size_t run, int64_t begin, int64_t end, const kernels::Decay<T>& fade) {
          const T* const marks = marks_in(own);
          const double after =
              marks ? gate_gradient_.meet(head, run, marks, state, r) : 0.0;
          const auto rows = [&](const auto& x) {
            return reversed(slice(x, begin, end));
          };
          kernels::key_value_gradient<T>(
              rows(queries(head)), rows(gradient(head)), rows(keys(head)),
              rows(values(head)), fade, state, r.data, rows(key_sink(all)),
              rows(Sink<T>{key_rows<T>(call_, pair_.d_v, head)}), own);
          if (marks) gate_gradient_.add_rows(head, begin, end, after);
        },
        [](double) {});
    fade_to_first(head, state);
    if (r.data) fade_to_first(head, r);
  }

  // d_decay_d = sum_i q_id (dS_i / dlog g_d) [d_out_i | d_den_i]
  //             + <dS_N / dlog g_d, d_s1>
  void decay_pass(Strip strip, T* own) const {
    const int64_t cols = strip.end - strip.begin;
    T* const space = own + kernels::decay_gradient_scratch<T>(width_, cols);
    const MatView<T> state{space, width_, cols, cols, 1};
    const MatView<T> slope{space + width_ * cols, width_, cols, cols, 1};
    const MatView<T> d_state{space + 2 * width_ * cols, width_, cols, cols, 1};
    const Sequence& rows = sequence_of(call_, strip.head);
    fill(pair_.s0, pair_.z0, strip, state);
    std::fill_n(slope.data, width_ * cols, T{0});
    auto factors = column_decay<T>(call_, decay_, strip).log_factor;
    if (call_.decay_by == DecayBy::head) factors = {factors.data, 1, cols, 0, 0};
    double* const moment =
        pair_.d_decay.template data_ptr<double>() + strip.head * d_ + strip.begin;
    kernels::decay_gradient<T>(
        gradient(strip.head), values(strip.head), columns(keys(strip.head), strip),
        gated_forwards<T>({kernels::Decay<T>::By::column, factors}, gates(strip.head),
                          0, rows.keys),
        state, slope, columns(queries(strip.head), strip).x, call_.map, moment, own);
    fill(pair_.d_s1, pair_.d_z1, strip, d_state);
    for (int64_t e = 0; e < width_; ++e)
      for (int64_t d = 0; d < cols; ++d)
        moment[d] +=
            static_cast<double>(slope(e, d)) * static_cast<double>(d_state(e, d));
  }

  template <class Pass>
  void over(int64_t columns, const Pass& pass) {
    for_each_strip<T>(heads(), columns,
                      scratch() + state_size_ + gate_gradient_.marks(), pass);
  }

  /// All passes of a head after each other: its rows stay in the cache.
  template <class Prepare>
  void run_head_by_head(const Prepare& prepare) {
    over(0, [&](Strip strip, T* own) {
      const Strip all{strip.head, 0, d_};
      prepare(all.head);
      query_pass(all, own);
      if (fused()) return key_value_pass(all.head, own);
      key_pass(all, own);
      if (pair_.v.defined()) value_pass({all.head, 0, pair_.value_width()}, own);
    });
    run_decay();
  }

  /// Few heads: each pass shares out its columns.
  void run_in_strips() {
    over(d_, [&](Strip strip, T* own) { query_pass(strip, own); });
    over(d_, [&](Strip strip, T* own) { key_pass(strip, own); });
    if (pair_.v.defined())
      over(pair_.value_width(), [&](Strip strip, T* own) { value_pass(strip, own); });
    run_decay();
  }

  void run_decay() {
    if (!pair_.d_decay.defined()) return;
    const int64_t numbers =
        kernels::decay_gradient_scratch<T>(width_, d_) + 3 * state_size_;
    for_each_strip<T>(heads(), d_, numbers,
                      [&](Strip strip, T* own) { decay_pass(strip, own); });
  }

  // With every key visible, sums over queries and sums over keys come apart:
  //   r = [d_s1^T | d_z1] + sum_i [d_out_i / den_i | d_den_i]^T q_i      [E + 1, D]
  //   dq_i = [d_out_i / den_i | d_den_i] [s1^T | z1],  dk_j = [v_j | 1] r,
  //   dv_j = k_j r^T without its last column
  void run_full() {
    const at::Tensor r =
        at::empty({call_.states(), call_.h, width_, d_}, pair_.q.options());
    over(d_, [&](Strip strip, T* own) {
      const auto cut = [&](auto view) { return view.columns(strip.begin, strip.end); };
      const MatView<T> sum = cut(head_view<T>(r, strip.head));
      fill(pair_.d_s1, pair_.d_z1, strip, sum);
      kernels::absorb<T>(gradient(strip.head), columns(queries(strip.head), strip), sum,
                         nullptr, own);
      kernels::read_state<T>(values(strip.head), {}, sum, key_sink(strip), own);
      const MatView<T> state{own + scratch(), width_, sum.cols, sum.cols, 1};
      fill(pair_.s1, pair_.z1, strip, state);
      kernels::read_state<T>(gradient(strip.head), {}, state, query_sink(strip), own);
    });
    if (pair_.d_den.defined()) pair_.d_z0.copy_(r.select(2, width_ - 1));
    if (pair_.v.defined()) run_full_values(r);
    for (int64_t head = 0; head < heads(); ++head) {
      const double factor = max_.heads[static_cast<size_t>(head)].front().factor;
      if (pair_.d_den.defined()) shrink(head_column<T>(pair_.d_z0, head), factor);
      if (pair_.v.defined()) shrink(head_view<T>(pair_.d_s0, head), factor);
    }
  }

  void run_full_values(const at::Tensor& r) {
    pair_.d_s0.copy_(r.slice(2, 0, pair_.value_width()).transpose(2, 3));
    over(pair_.value_width(), [&](Strip strip, T* own) {
      const auto cut = [&](auto view) { return view.columns(strip.begin, strip.end); };
      kernels::read_state<T>(keys(strip.head), {},
                             cut(head_view<T>(pair_.d_s0, strip.head)),
                             {cut(key_rows<T>(call_, pair_.d_v, strip.head))}, own);
    });
  }

  const LinearCall& call_;
  const at::Tensor& decay_;
  const RunningMax& max_;
  Pair pair_;
  int64_t d_, width_, state_size_;  // widths, and the numbers of one transposed state
  GateGradient<T> gate_gradient_;
  T one_ = 1;
};

}  // namespace lagwise::ops
