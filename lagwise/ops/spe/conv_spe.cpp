#include "lagwise/ops/conv_spe.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "lagwise/ops/spe/conv_spe_call.h"
#include "lagwise/ops/torch/expect.h"
#include "lagwise/ops/torch/once_differentiable.h"

// The operator and its gradient (CPU, Meta, Autograd), the public function,
// registration.

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = c10::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

constexpr const char* kOp = "conv_spe";

ConvSpeOptions options_of(const Optional& z, int64_t realizations,
                          c10::string_view noise, at::IntArrayRef grid,
                          int64_t query_start, int64_t key_start, int64_t z_start,
                          int64_t seed, int64_t step, int64_t micro_step,
                          c10::string_view method) {
  ConvSpeOptions options;
  options.realizations = realizations;
  options.noise = std::string(noise);
  options.grid = grid.vec();
  options.query_start = query_start, options.key_start = key_start;
  options.draw.seed = static_cast<uint64_t>(seed);
  options.draw.step = step, options.draw.micro_step = micro_step;
  options.z = z.value_or(Tensor());
  options.z_start = z_start;
  options.method = std::string(method);
  return options;
}

// ---- conv_spe: q', k'

Two forward_meta(const ConvSpeCall& call) {
  const auto make = [&](const Tensor& x) {
    return at::empty({call.b, call.h, x.size(2), call.r}, x.options());
  };
  return {make(call.q), make(call.k)};
}

template <Two (*compute)(const ConvSpeCall&)>
Two forward_op(const Tensor& q, const Tensor& k, const Tensor& query_kernel,
               const Tensor& key_kernel, const Optional& z, int64_t realizations,
               c10::string_view noise, at::IntArrayRef grid, int64_t query_start,
               int64_t key_start, int64_t z_start, int64_t seed, int64_t step,
               int64_t micro_step, c10::string_view method) {
  return compute(
      check_conv_spe(q, k, query_kernel, key_kernel,
                     options_of(z, realizations, noise, grid, query_start, key_start,
                                z_start, seed, step, micro_step, method)));
}

/// Calls an operator with the options spread out, after its leading tensors.
template <class Op, class... Tensors>
auto call_with(const Op& op, const ConvSpeOptions& o, const Tensors&... tensors) {
  return op.call(tensors..., o.z.defined() ? Optional(o.z) : c10::nullopt,
                 o.realizations, o.noise, o.grid, o.query_start, o.key_start, o.z_start,
                 static_cast<int64_t>(o.draw.seed), o.draw.step, o.draw.micro_step,
                 o.method);
}

// ---- _conv_spe_backward: of q, k, query_kernel, key_kernel

Four backward_cpu(const ConvSpeCall& call, const Tensor& d_q, const Tensor& d_k) {
  const auto g = conv_spe_backward_cpu(call, d_q, d_k);
  return {g[0], g[1], g[2], g[3]};
}

Four backward_meta(const ConvSpeCall& call, const Tensor&, const Tensor&) {
  const auto like = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
  return {like(call.q), like(call.k), like(call.query_kernel), like(call.key_kernel)};
}

template <Four (*compute)(const ConvSpeCall&, const Tensor&, const Tensor&)>
Four backward_op(const Tensor& d_q, const Tensor& d_k, const Tensor& q, const Tensor& k,
                 const Tensor& query_kernel, const Tensor& key_kernel,
                 const Optional& z, int64_t realizations, c10::string_view noise,
                 at::IntArrayRef grid, int64_t query_start, int64_t key_start,
                 int64_t z_start, int64_t seed, int64_t step, int64_t micro_step,
                 c10::string_view method) {
  const ConvSpeCall call =
      check_conv_spe(q, k, query_kernel, key_kernel,
                     options_of(z, realizations, noise, grid, query_start, key_start,
                                z_start, seed, step, micro_step, method));
  expect_tensor(kOp, "d_q", "[B, H, N, R]", d_q, {call.b, call.h, q.size(2), call.r},
                q);
  expect_tensor(kOp, "d_k", "[B, H, M, R]", d_k, {call.b, call.h, k.size(2), call.r},
                q);
  return compute(call, d_q, d_k);
}

// ---- autograd

struct ConvSpe : torch::autograd::Function<ConvSpe> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& query_kernel, const Tensor& key_kernel,
                               const ConvSpeOptions& options) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [q1, k1] = conv_spe(q, k, query_kernel, key_kernel, options);
    ctx->save_for_backward({q, k, query_kernel, key_kernel, options.z});
    ctx->saved_data["realizations"] = options.realizations;
    ctx->saved_data["noise"] = options.noise;
    ctx->saved_data["grid"] = options.grid;
    ctx->saved_data["at"] =
        std::vector<int64_t>{options.query_start, options.key_start, options.z_start};
    ctx->saved_data["draw"] =
        std::vector<int64_t>{static_cast<int64_t>(options.draw.seed), options.draw.step,
                             options.draw.micro_step};
    ctx->saved_data["method"] = options.method;
    return {q1, k1};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("lagwise::_conv_spe_backward", "")
                               .typed<decltype(backward_op<backward_cpu>)>();
    const auto x = ctx->get_saved_variables();
    const auto at = ctx->saved_data["at"].toIntVector(),
               draw = ctx->saved_data["draw"].toIntVector();
    ConvSpeOptions options;
    options.realizations = ctx->saved_data["realizations"].toInt();
    options.noise = ctx->saved_data["noise"].toStringRef();
    options.grid = ctx->saved_data["grid"].toIntVector();
    options.query_start = at[0], options.key_start = at[1], options.z_start = at[2];
    options.draw = {static_cast<uint64_t>(draw[0]), draw[1], draw[2]};
    options.z = x[4];
    options.method = ctx->saved_data["method"].toStringRef();
    variable_list gradients;
    {
      at::AutoGradMode off(false);
      const auto [q, k, query_kernel, key_kernel] =
          call_with(op, options, grads[0], grads[1], x[0], x[1], x[2], x[3]);
      gradients = {q, k, query_kernel, key_kernel};
    }
    gradients = once_differentiable(kOp, {x[0], x[1], x[2], x[3], grads[0], grads[1]},
                                    std::move(gradients));
    gradients.emplace_back();  // of the options
    return gradients;
  }
};

Two forward_autograd(const Tensor& q, const Tensor& k, const Tensor& query_kernel,
                     const Tensor& key_kernel, const Optional& z, int64_t realizations,
                     c10::string_view noise, at::IntArrayRef grid, int64_t query_start,
                     int64_t key_start, int64_t z_start, int64_t seed, int64_t step,
                     int64_t micro_step, c10::string_view method) {
  const auto r =
      ConvSpe::apply(q, k, query_kernel, key_kernel,
                     options_of(z, realizations, noise, grid, query_start, key_start,
                                z_start, seed, step, micro_step, method));
  return {r[0], r[1]};
}

}  // namespace

Two conv_spe(const Tensor& q, const Tensor& k, const Tensor& query_kernel,
             const Tensor& key_kernel, const ConvSpeOptions& options) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::conv_spe", "")
                             .typed<decltype(forward_op<conv_spe_cpu>)>();
  return call_with(op, options, q, k, query_kernel, key_kernel);
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  const std::string arguments =
      "Tensor q, Tensor k, Tensor query_kernel, Tensor key_kernel, Tensor? z=None, *, "
      "int realizations=64, str noise=\"gaussian\", int[] grid=[], int query_start=0, "
      "int key_start=0, int z_start=0, int seed=0, int step=0, int micro_step=0, "
      "str method=\"auto\")";
  m.def(("conv_spe(" + arguments + " -> (Tensor q, Tensor k)").c_str());
  m.def(("_conv_spe_backward(Tensor d_q, Tensor d_k, " + arguments +
         " -> (Tensor d_query, Tensor d_key, Tensor d_query_kernel, "
         "Tensor d_key_kernel)")
            .c_str());
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("conv_spe", forward_op<conv_spe_cpu>);
  m.impl("_conv_spe_backward", backward_op<backward_cpu>);
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("conv_spe", forward_op<forward_meta>);
  m.impl("_conv_spe_backward", backward_op<backward_meta>);
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) { m.impl("conv_spe", forward_autograd); }

}  // namespace lagwise::ops
