// Matrix products by Debian's oneDNN, which compiles them for what the CPU can do.

#include <c10/util/Exception.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "lagwise/ops/products/one_thread.h"
#include "lagwise/ops/products/products.h"

namespace lagwise::ops::products {
namespace {

/// A matrix as BLAS describes one: by rows, or by the rows of its transpose.
struct Factor {
  char turned;
  dnnl_dim_t step;
  template <class T>
  explicit Factor(const MatView<const T>& x)
      : turned(x.col_step == 1 ? 'N' : 'T'),
        step(x.col_step == 1 ? std::max(x.row_step, x.cols)
                             : std::max(x.col_step, x.rows)) {}
};

void check(dnnl_status_t status, int64_t m, int64_t k, int64_t n) {
  TORCH_CHECK(status == dnnl_success, "oneDNN refused a product of ", m, " x ", k,
              " x ", n, ": status ", static_cast<int>(status));
}

/// What decides which program oneDNN compiles for a product of bf16.
using ProductShape =
    std::tuple<int64_t, int64_t, int64_t, char, int64_t, char, int64_t, int64_t, bool>;

/// One product of bf16 factors, compiled by oneDNN for its shape and for one thread.
class CompiledProduct {
 public:
  explicit CompiledProduct(const ProductShape& shape) {
    const auto [m, k, n, a_turned, a_step, b_turned, b_step, c_step, add] = shape;
    const auto matrix = [&, m = m, k = k, n = n](int64_t rows, int64_t cols,
                                                 char turned, int64_t step,
                                                 dnnl_data_type_t type) {
      const dnnl_dims_t sizes = {rows, cols};
      const dnnl_dims_t steps = {turned == 'N' ? step : 1, turned == 'N' ? 1 : step};
      dnnl_memory_desc_t made;
      check(dnnl_memory_desc_init_by_strides(&made, 2, sizes, type, steps), m, k, n);
      return made;
    };
    descriptions_ = {matrix(m, k, a_turned, a_step, dnnl_bf16),
                     matrix(k, n, b_turned, b_step, dnnl_bf16),
                     matrix(m, n, 'N', c_step, dnnl_f32)};
    compile(add, m, k, n);
  }
  ~CompiledProduct() {
    dnnl_primitive_destroy(product_);
    dnnl_stream_destroy(stream_);
    dnnl_engine_destroy(engine_);
  }
  CompiledProduct(const CompiledProduct&) = delete;
  CompiledProduct& operator=(const CompiledProduct&) = delete;

  dnnl_status_t run(const void* a, const void* b, void* c) const {
    const std::array<void*, 3> data = {const_cast<void*>(a), const_cast<void*>(b), c};
    std::array<dnnl_memory_t, 3> memories{};
    dnnl_status_t status = dnnl_success;
    for (size_t i = 0; i < 3 && status == dnnl_success; ++i)
      status = dnnl_memory_create(&memories[i], &descriptions_[i], engine_, data[i]);
    const std::array<dnnl_exec_arg_t, 3> arguments = {{{DNNL_ARG_SRC, memories[0]},
                                                       {DNNL_ARG_WEIGHTS, memories[1]},
                                                       {DNNL_ARG_DST, memories[2]}}};
    if (status == dnnl_success)
      status = dnnl_primitive_execute(product_, stream_, 3, arguments.data());
    if (status == dnnl_success) status = dnnl_stream_wait(stream_);
    for (const dnnl_memory_t memory : memories)
      if (memory) dnnl_memory_destroy(memory);
    return status;
  }

 private:
  void compile(bool add, int64_t m, int64_t k, int64_t n) {
    check(dnnl_engine_create(&engine_, dnnl_cpu, 0), m, k, n);
    check(dnnl_stream_create(&stream_, engine_, dnnl_stream_default_flags), m, k, n);
    dnnl_primitive_attr_t attributes = nullptr;
    dnnl_post_ops_t after = nullptr;
    check(dnnl_primitive_attr_create(&attributes), m, k, n);
    check(dnnl_post_ops_create(&after), m, k, n);
    if (add) check(dnnl_post_ops_append_sum(after, 1.0f), m, k, n);
    check(dnnl_primitive_attr_set_post_ops(attributes, after), m, k, n);
    dnnl_matmul_desc_t product;
    check(dnnl_matmul_desc_init(&product, &descriptions_[0], &descriptions_[1], nullptr,
                                &descriptions_[2]),
          m, k, n);
    dnnl_primitive_desc_t chosen = nullptr;
    check(dnnl_primitive_desc_create(&chosen, &product, attributes, engine_, nullptr),
          m, k, n);
    check(dnnl_primitive_create(&product_, chosen), m, k, n);
    dnnl_primitive_desc_destroy(chosen);
    dnnl_post_ops_destroy(after);
    dnnl_primitive_attr_destroy(attributes);
  }

  dnnl_engine_t engine_ = nullptr;
  dnnl_stream_t stream_ = nullptr;
  dnnl_primitive_t product_ = nullptr;
  std::array<dnnl_memory_desc_t, 3> descriptions_{};
};

/// Compiling takes milliseconds, so each thread keeps what it compiled. A model has few
/// shapes; batches of ever new lengths must not fill the memory.
const CompiledProduct& compiled(const ProductShape& shape) {
  constexpr size_t kMost = 256;
  thread_local std::map<ProductShape, std::unique_ptr<CompiledProduct>> kept;
  if (kept.size() >= kMost && !kept.contains(shape)) kept.clear();
  std::unique_ptr<CompiledProduct>& product = kept[shape];
  if (!product) product = std::make_unique<CompiledProduct>(shape);
  return *product;
}

}  // namespace

void multiply_f32(MatView<const float> a, MatView<const float> b, bool add,
                  MatView<float> c) {
  const OneThread one;
  const Factor left(a), right(b);
  check(dnnl_sgemm(left.turned, right.turned, c.rows, c.cols, a.cols, 1.0f, a.data,
                   left.step, b.data, right.step, add ? 1.0f : 0.0f, c.data,
                   std::max(c.row_step, c.cols)),
        c.rows, a.cols, c.cols);
}

void multiply_bf16(MatView<const c10::BFloat16> a, MatView<const c10::BFloat16> b,
                   bool add, MatView<float> c) {
  const OneThread one;
  const Factor left(a), right(b);
  const CompiledProduct& product =
      compiled({c.rows, a.cols, c.cols, left.turned, left.step, right.turned,
                right.step, std::max(c.row_step, c.cols), add});
  check(product.run(a.data, b.data, c.data), c.rows, a.cols, c.cols);
}

bool has_bf16_instructions() {
  const auto has = [](dnnl_cpu_isa_t wanted) {
    return (dnnl_get_effective_cpu_isa() & wanted) == wanted;
  };
  // It would use the tiles of AMX, which is not safe everywhere: products/tiles.h.
  return has(dnnl_cpu_isa_avx512_core_bf16) && !has(dnnl_cpu_isa_avx512_core_amx);
}

std::string library() {
  const dnnl_version_t* const version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." +
         std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace lagwise::ops::products
