#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <vector>

#include "lagwise/kernels/turn_table.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/rotate.h"
#include "lagwise/ops/torch/once_differentiable.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "rotation_table";
constexpr int64_t kRows = 256;  // a multiple of the kernel's 64

std::vector<int64_t> check(const Tensor& positions, const Tensor& frequency,
                           at::ScalarType type) {
  TORCH_CHECK(positions.dim() == 3 && positions.scalar_type() == at::kDouble, kOp,
              ": expected positions [B|1, N, A], Double, got ", positions.sizes(), ", ",
              positions.scalar_type());
  TORCH_CHECK(frequency.dim() == 2 && frequency.scalar_type() == at::kDouble, kOp,
              ": expected frequency [H|1, P], Double, got ", frequency.sizes(), ", ",
              frequency.scalar_type());
  const int64_t axes = positions.size(2), planes = frequency.size(1);
  TORCH_CHECK(axes > 0 && planes % axes == 0, kOp, ": expected the number of planes, ",
              planes, ", to be a multiple of the number of axes, got ", axes);
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected a table of Float or Double, got ", type);
  return {positions.size(0), frequency.size(0), positions.size(1), 2 * planes};
}

template <class T>
void fill(const Tensor& positions, const Tensor& frequency, double scale,
          Tensor& table) {
  const int64_t n = positions.size(1), axes = positions.size(2);
  const int64_t heads = table.size(1), planes = frequency.size(1);
  const int64_t blocks = (n + kRows - 1) / kRows;
  const int64_t tasks = table.size(0) * heads * blocks;
  at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> scratch(size_t(kernels::turn_table_scratch(planes)));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / blocks, from = task % blocks * kRows;
      const int64_t to = std::min(n, from + kRows);
      const double* const p = positions.data_ptr<double>() + head / heads * n * axes;
      const double* const f = frequency.data_ptr<double>() + head % heads * planes;
      const MatView<const double> rows{p, n, axes, axes};
      kernels::turn_table<T>(rows.slice(from, to), f, scale,
                             head_view<T>(table, head).slice(from, to), scratch.data());
    }
  });
}

Tensor table_cpu(const Tensor& positions, const Tensor& frequency, double scale,
                 at::ScalarType type) {
  const auto sizes = check(positions, frequency, type);
  Tensor table = at::empty(sizes, positions.options().dtype(type));
  AT_DISPATCH_FLOATING_TYPES(type, "rotation_table", [&] {
    fill<scalar_t>(positions.contiguous(), frequency.contiguous(), scale, table);
  });
  return table;
}

Tensor table_meta(const Tensor& positions, const Tensor& frequency, double,
                  at::ScalarType type) {
  return at::empty(check(positions, frequency, type), positions.options().dtype(type));
}

/// With t = p f: d/df (cos t, sin t) = p (-sin t, cos t), summed over rows in double.
Tensor frequency_gradient(const Tensor& positions, const Tensor& table,
                          const Tensor& g) {
  const int64_t planes = table.size(3) / 2, axes = positions.size(2);
  const auto cosines = [&](const Tensor& x) { return x.narrow(3, 0, planes); };
  const auto sines = [&](const Tensor& x) { return x.narrow(3, planes, planes); };
  const Tensor d_angle =
      (cosines(table) * sines(g) - sines(table) * cosines(g)).to(at::kDouble);
  const Tensor by_axis = d_angle.reshape(
      {table.size(0), table.size(1), table.size(2), axes, planes / axes});
  const Tensor p = positions.unsqueeze(1).unsqueeze(4);  // [B|1, 1, N, A, 1]
  return (by_axis * p).sum(at::IntArrayRef{0, 2}).reshape({table.size(1), planes});
}

struct RotationTable : torch::autograd::Function<RotationTable> {
  static Tensor forward(AutogradContext* ctx, const Tensor& positions,
                        const Tensor& frequency, double scale, int64_t type) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Tensor table =
        rotation_table(positions, frequency, scale, static_cast<at::ScalarType>(type));
    ctx->save_for_backward({positions, table});
    return table;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    variable_list gradients(2);
    {
      at::AutoGradMode off(false);
      gradients[1] = frequency_gradient(saved[0], saved[1], grads[0]);
    }
    gradients = once_differentiable(kOp, {saved[1], grads[0]}, std::move(gradients));
    gradients.resize(4);
    return gradients;
  }
};

Tensor table_autograd(const Tensor& positions, const Tensor& frequency, double scale,
                      at::ScalarType type) {
  // Returning no gradient would look to a learner like a gradient of zero.
  TORCH_CHECK(!positions.requires_grad(), kOp,
              ": expected positions that need no gradient, got some that do");
  return RotationTable::apply(positions, frequency, scale, static_cast<int64_t>(type));
}

}  // namespace

Tensor rotation_table(const Tensor& positions, const Tensor& frequency, double scale,
                      at::ScalarType type) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::rotation_table", "")
                             .typed<decltype(table_cpu)>();
  return op.call(positions, frequency, scale, type);
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "rotation_table(Tensor positions, Tensor frequency, float scale=1, "
      "ScalarType dtype=6) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) { m.impl("rotation_table", table_cpu); }
TORCH_LIBRARY_IMPL(lagwise, Meta, m) { m.impl("rotation_table", table_meta); }
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) { m.impl("rotation_table", table_autograd); }

}  // namespace lagwise::ops
