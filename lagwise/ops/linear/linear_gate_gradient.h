#pragma once

#include <algorithm>
#include <vector>

#include "lagwise/kernels/gate_gradient.h"
#include "lagwise/ops/linear/linear_pair.h"
#include "lagwise/ops/linear/linear_views.h"
#include "lagwise/ops/linear/running_max.h"

namespace lagwise::ops {

/// The gradient of gates, beside the passes of linear_backward-inl.h: rows are cut into
/// runs, the query pass leaves its state behind after each of them, and where the
/// gradient of the state comes by on its way back, the two meet.
template <class T>
class GateGradient {
 public:
  GateGradient(const LinearCall& call, const at::Tensor& decay, const RunningMax& max,
               const Pair& pair)
      : call_(call),
        decay_(decay),
        max_(max),
        pair_(pair),
        d_(pair.q.size(3)),
        width_(pair.width()),
        runs_(wanted() ? anchored_runs(max.heads) : max.heads) {}

  bool wanted() const { return pair_.d_gate.defined(); }
  /// The runs of a head: those of running_max.h, and with gates no long ones.
  const std::vector<Run>& runs(int64_t head) const {
    return runs_[static_cast<size_t>(head)];
  }

  /// Numbers in the states of a head, `marks` [runs, D, width].
  int64_t marks() const {
    size_t most = 0;
    for (const auto& runs : runs_) most = std::max(most, runs.size());
    return wanted() ? static_cast<int64_t>(most) * d_ * width_ : 0;
  }

  /// <S, dS> after a run. S is what the query pass left there; dS, [D, E] and [D, 1], has
  /// come back to the row behind, and the gate of that row is still between them.
  double meet(int64_t head, size_t run, const T* marks, MatView<const T> d_s,
              MatView<const T> d_z) const {
    const MatView<const T> s{marks + static_cast<int64_t>(run) * d_ * width_, d_,
                             width_, width_, 1};
    const int64_t end = runs(head)[run].end, values = d_s.cols;
    const auto rows = [&](int64_t begin, int64_t last) {
      const auto part = s.slice(begin, last);
      double sum =
          kernels::sum_of_products<T>(part.columns(0, values), d_s.slice(begin, last));
      if (d_z.data)
        sum += kernels::sum_of_products<T>(part.columns(values, width_),
                                           d_z.slice(begin, last));
      return sum;
    };
    const auto factor = [&](int64_t d) {
      return static_cast<double>(factor_before<T>(call_, decay_, head, end, d));
    };
    if (run + 1 == runs(head).size()) return rows(0, d_);
    if (call_.decay_by != LinearCall::DecayBy::channel) return rows(0, d_) * factor(0);
    double all = 0;
    for (int64_t d = 0; d < d_; ++d) all += rows(d, d + 1) * factor(d);
    return all;
  }

  /// Rows [begin, end), whose dq and dk are there; `after` is what met behind them.
  void add_rows(int64_t head, int64_t begin, int64_t end, double after) const {
    const auto rows = [&](const auto& view) {
      return slice_or_empty(MatView<const T>(view), begin, end);
    };
    const bool from_nothing = begin == 0 && !pair_.s0.defined() && !pair_.z0.defined();
    kernels::gate_gradient<T>(
        rows(query_rows<T>(call_, pair_.q, head)),
        rows(query_rows<T>(call_, pair_.d_q, head)),
        rows(key_rows<T>(call_, pair_.k, head)),
        rows(key_rows<T>(call_, pair_.d_k, head)),
        rows(key_column<T>(call_, max_.weight, head)),
        rows(query_column<T>(call_, call_.log_decay, head)), from_nothing, after,
        query_column<T>(call_, pair_.d_gate, head).slice(begin, end));
  }

 private:
  const LinearCall& call_;
  const at::Tensor& decay_;
  const RunningMax& max_;
  const Pair pair_;
  int64_t d_, width_;
  std::vector<std::vector<Run>> runs_;  // of every head
};

}  // namespace lagwise::ops
