#include "lagwise/ops/feature_map.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <stdexcept>

#include "lagwise/core/spec.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::FeatureMap;
using Kind = FeatureMap::Kind;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "feature_map";
constexpr double kReluOffset = 1e-3;  // Performer's: a row of zeros divides by it
constexpr int64_t kGrain = 16384;     // numbers worth a thread

FeatureMap with_offset(Spec& spec, Kind kind, double fallback) {
  const double offset = spec.take("offset", fallback);
  if (offset >= 0) return {kind, offset};
  throw std::invalid_argument(spec.name() + ": expected offset >= 0, got " +
                              std::to_string(offset));
}

FeatureMap read_map(Spec& spec) {
  if (spec.name() == "none") return {};
  if (spec.name() == "elu1") return {Kind::elu1};
  if (spec.name() == "relu") return with_offset(spec, Kind::relu, kReluOffset);
  if (spec.name() == "relu_squared") return with_offset(spec, Kind::relu_squared, 0);
  if (spec.name() == "exp") return {Kind::exp};
  if (spec.name() == "silu") return {Kind::silu};
  throw std::invalid_argument(
      "expected feature_map none, elu1, relu, relu_squared, exp or silu, got '" +
      spec.name() + "'");
}

void check(const Tensor& x) {
  const auto type = x.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected a floating-point tensor, Float or Double, got ", type);
}

/// Pieces of a dense tensor as rows of one matrix each.
template <class T>
MatView<T> piece(const Tensor& x, int64_t begin, int64_t end) {
  return {static_cast<T*>(x.data_ptr()) + begin, 1, end - begin, end - begin, 1};
}

Tensor map_cpu(const Tensor& x_in, StringView text) {
  check(x_in);
  const FeatureMap map = read_feature_map(kOp, std::string(text));
  const Tensor x = x_in.contiguous(), out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
      kernels::map_rows<scalar_t>(map, piece<const scalar_t>(x, begin, end),
                                  piece<scalar_t>(out, begin, end));
    });
  });
  return out;
}

void check_slopes(const Tensor& grad, const Tensor& x) {
  check(x);
  TORCH_CHECK(grad.sizes() == x.sizes() && grad.scalar_type() == x.scalar_type(), kOp,
              ": expected a gradient like x, ", x.scalar_type(), " ", x.sizes(),
              ", got ", grad.scalar_type(), " ", grad.sizes());
}

Tensor slopes_cpu(const Tensor& grad_in, const Tensor& x_in, StringView text) {
  check_slopes(grad_in, x_in);
  const FeatureMap map = read_feature_map(kOp, std::string(text));
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  const Tensor out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
      kernels::map_slopes<scalar_t>(map, piece<const scalar_t>(x, begin, end),
                                    piece<const scalar_t>(grad, begin, end),
                                    piece<scalar_t>(out, begin, end));
    });
  });
  return out;
}

Tensor map_meta(const Tensor& x, StringView text) {
  check(x);
  read_feature_map(kOp, std::string(text));
  return at::empty_like(x, at::MemoryFormat::Contiguous);
}

Tensor slopes_meta(const Tensor& grad, const Tensor& x, StringView text) {
  check_slopes(grad, x);
  read_feature_map(kOp, std::string(text));
  return at::empty_like(x, at::MemoryFormat::Contiguous);
}

Tensor call_slopes(const Tensor& grad, const Tensor& x, StringView text) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::_feature_map_backward", "")
                             .typed<decltype(slopes_cpu)>();
  return op.call(grad, x, text);
}

auto& map_operator() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::feature_map", "")
                             .typed<decltype(map_cpu)>();
  return op;
}

struct MapFunction : torch::autograd::Function<MapFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x,
                        const std::string& text) {
    ctx->save_for_backward({x});
    ctx->saved_data["map"] = text;
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    return map_operator().call(x, text);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    Tensor dx;
    {
      at::AutoGradMode off(false);
      dx = call_slopes(grads[0], x, ctx->saved_data["map"].toStringRef());
    }
    return once_differentiable(kOp, {x, grads[0]}, {dx, Tensor()});
  }
};

Tensor map_autograd(const Tensor& x, StringView text) {
  return MapFunction::apply(x, std::string(text));
}

}  // namespace

FeatureMap read_feature_map(const char* op, const std::string& text) {
  thread_local std::string last = "none";
  thread_local FeatureMap map;
  if (text == last) return map;
  try {
    Spec spec(text);
    const FeatureMap read = read_map(spec);
    spec.finish();
    map = read, last = text;
    return map;
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, op, ": ", error.what());
  }
}

Tensor feature_map(const Tensor& x, const std::string& map) {
  return map_operator().call(x, map);
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def("feature_map(Tensor x, str map) -> Tensor");
  m.def("_feature_map_backward(Tensor grad, Tensor x, str map) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("feature_map", map_cpu);
  m.impl("_feature_map_backward", slopes_cpu);
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("feature_map", map_meta);
  m.impl("_feature_map_backward", slopes_meta);
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) { m.impl("feature_map", map_autograd); }

}  // namespace lagwise::ops
