#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/linear_cases.h"

namespace lagwise::bench {

struct ExactPlan {
  int threads = 2;
  bool quick = false;  ///< shorter sequences, fewer repetitions
  std::string only;    ///< of these groups: alibi, huang, causal, threads, memory,
                       ///<   step, toeplitz; empty: all
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<void(const BenchRow&)> on_row = [](const BenchRow&) {};
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

/// Measures exact attention at H = 8, D = 64. What the baselines are:
///
///     torch        plain ATen with the N x N matrix; or eager, for the step
///     skew         the same for Huang's table, with the skew of its authors
///     half_length  ours at half the length, times four: memory of long ones
///     full         ours without causality
///     one_thread   ours on one thread
///     read         reading the cache and nothing else
///     linear_step  a step of linear attention, whose state does not grow
///     exact        exact attention with the same bias, of the Toeplitz form of linear
///
/// Each row is handed to `on_row` as soon as it is measured. Toeplitz lengths double
/// until that form is faster than exact attention; a `note` says from where.
///
/// gflops counts the products that any tiled attention must make: two forward, five
/// backward (the scores again among them), three and eight with a table by lag; half
/// of them when causal.
std::vector<BenchRow> run_exact_cases(const ExactPlan& plan);

}  // namespace lagwise::bench
