#include "lagwise/ops/linear/running_max.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "lagwise/ops/linear/linear_views.h"

namespace lagwise::ops {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// exp(before - now), and 0 where there was nothing before.
double shrink(double before, double now) {
  return before == kNothing ? 0.0 : std::exp(before - now);
}

/// Weights of one sequence and head, its runs, and the maximum after its last key.
template <class T>
double cut_runs(MatView<const T> c, bool causal, double m, MatView<T> weight,
                std::vector<Run>& runs) {
  const int64_t rows = c.rows;
  const auto at = [&](int64_t j) { return static_cast<double>(c(j, 0)); };
  double seen = m;
  if (!causal)
    for (int64_t j = 0; j < rows; ++j) seen = std::max(seen, at(j));
  for (int64_t j = 0; j < rows; ++j) {
    if (causal) seen = std::max(seen, at(j));
    if (j == 0 || seen > m) {
      if (!runs.empty()) runs.back().end = j;
      runs.push_back({j, rows, shrink(m, seen)});
      m = seen;
    }
    weight(j, 0) = static_cast<T>(shrink(at(j), m));
  }
  if (rows == 0) runs.push_back({0, 0, 1.0});
  return m;
}

}  // namespace

RunningMax running_max(const LinearCall& call) {
  RunningMax result;
  result.heads.resize(static_cast<size_t>(call.heads()));
  if (!call.log_scale.defined()) {
    for (int64_t head = 0; head < call.heads(); ++head)
      result.heads[static_cast<size_t>(head)] = {
          {0, call.sequences[static_cast<size_t>(head / call.h)].keys, 1.0}};
    return result;
  }
  const auto options = call.q.options();
  result.weight = at::zeros({call.b, call.h, call.m}, options);
  result.last = at::empty({call.states(), call.h}, options);
  const at::Tensor before = call.max.defined() ? call.max.contiguous() : call.max;
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention", [&] {
    for (int64_t head = 0; head < call.heads(); ++head) {
      const double m = before.defined()
                           ? static_cast<double>(before.data_ptr<scalar_t>()[head])
                           : kNothing;
      result.last.data_ptr<scalar_t>()[head] = static_cast<scalar_t>(cut_runs<scalar_t>(
          key_column<const scalar_t>(call, call.log_scale, head), call.causal, m,
          key_column<scalar_t>(call, result.weight, head),
          result.heads[static_cast<size_t>(head)]));
    }
  });
  return result;
}

std::vector<std::vector<Run>> anchored_runs(
    const std::vector<std::vector<Run>>& heads) {
  constexpr int64_t kStretch = 256;
  std::vector<std::vector<Run>> cut(heads.size());
  for (size_t head = 0; head < heads.size(); ++head)
    for (Run run : heads[head]) {
      for (; run.end - run.begin > kStretch; run.begin += kStretch, run.factor = 1.0)
        cut[head].push_back({run.begin, run.begin + kStretch, run.factor});
      cut[head].push_back(run);
    }
  return cut;
}

}  // namespace lagwise::ops
