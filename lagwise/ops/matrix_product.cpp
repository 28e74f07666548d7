#include "lagwise/ops/matrix_product.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

namespace lagwise::ops {
namespace {

/// oneDNN takes as many threads as OpenMP would give it; the pieces of a layer are
/// shared out by the caller, so here it has one.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// A matrix as BLAS describes one: by rows, or by the rows of its transpose.
struct Factor {
  char turned;
  dnnl_dim_t step;
  explicit Factor(const MatView<const float>& x)
      : turned(x.col_step == 1 ? 'N' : 'T'),
        step(x.col_step == 1 ? std::max(x.row_step, x.cols)
                             : std::max(x.col_step, x.rows)) {}
};

template <class T>
void clear(MatView<T> c) {
  for (int64_t i = 0; i < c.rows; ++i) std::fill_n(c.row(i), c.cols, T{0});
}

}  // namespace

void multiply(MatView<const float> a, MatView<const float> b, bool add,
              MatView<float> c) {
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0) return add ? void() : clear(c);
  const OneThread one;
  const Factor left(a), right(b);
  const dnnl_status_t status = dnnl_sgemm(
      left.turned, right.turned, c.rows, c.cols, a.cols, 1.0f, a.data, left.step,
      b.data, right.step, add ? 1.0f : 0.0f, c.data, std::max(c.row_step, c.cols));
  TORCH_CHECK(status == dnnl_success, "oneDNN refused a product of ", c.rows, " x ",
              a.cols, " x ", c.cols, ": status ", static_cast<int>(status));
}

std::string matrix_product_library() {
  const dnnl_version_t* const version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." +
         std::to_string(version->minor) + "." + std::to_string(version->patch);
}

void multiply(MatView<const double> a, MatView<const double> b, bool add,
              MatView<double> c) {
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0) return add ? void() : clear(c);
  // A pool's thread does not know what its caller has switched off.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto tensor = [](auto x) {
    return at::from_blob(const_cast<double*>(x.data), {x.rows, x.cols},
                         {x.row_step, x.col_step}, at::kDouble);
  };
  at::Tensor to = tensor(c);
  at::cpu::addmm_out(to, to, tensor(a), tensor(b), add ? 1 : 0, 1);
}

}  // namespace lagwise::ops
