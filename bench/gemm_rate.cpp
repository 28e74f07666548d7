#include "bench/gemm_rate.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>
#include <c10/core/GradMode.h>

#include <vector>

#include "bench/best_gflops.h"
#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise::bench {
namespace {

constexpr int64_t kRows = 1024, kInner = 512, kColumns = 512;

/// Puts back how many threads BLAS had.
struct OneBlasThread {
  OneBlasThread() { ops::set_blas_threads(1); }
  ~OneBlasThread() { ops::set_blas_threads(before); }
  int before = ops::blas_threads();
};

}  // namespace

double gemm_gflops(int threads) {
  const OneBlasThread one;
  const at::Tensor b = at::rand({kInner, kColumns}, at::kFloat);
  std::vector<at::Tensor> a, out;
  for (int i = 0; i < threads; ++i) {
    a.push_back(at::rand({kRows, kInner}, at::kFloat));
    out.push_back(at::empty({kRows, kColumns}, at::kFloat));
  }
  return best_gflops(threads, [&](int thread) {
    const c10::NoGradGuard no_graph;
    const auto i = static_cast<size_t>(thread);
    at::mm_out(out[i], a[i], b);
    return 2.0 * double(kRows * kInner * kColumns);
  });
}

}  // namespace lagwise::bench
