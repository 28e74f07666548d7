#include "lagwise/ops/favor.h"

#include <ATen/Dispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "lagwise/kernels/favor.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/torch/expect.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::Favor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = Optional<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;

constexpr const char* kOp = "favor_features";

Favor read(StringView kind, double offset) {
  if (kind == "positive") return {Favor::Kind::positive};
  if (kind == "two_sided") return {Favor::Kind::two_sided};
  TORCH_CHECK(kind == "relu", kOp,
              ": expected kind one of positive, two_sided, relu, got '", kind, "'");
  TORCH_CHECK(offset >= 0, kOp, ": expected offset >= 0, got ", offset);
  return {Favor::Kind::relu, offset};
}

void check(const Tensor& x, const Tensor& directions) {
  TORCH_CHECK(x.dim() == 4, kOp, ": expected x [B, H, N, D], got ", x.sizes());
  const auto type = x.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected a floating-point x, Float or Double, got ", type);
  TORCH_CHECK(directions.dim() == 2 && directions.size(1) == x.size(3), kOp,
              ": expected directions [m, D] with D = ", x.size(3), ", got ",
              directions.sizes());
  TORCH_CHECK(directions.size(0) > 0, kOp, ": expected at least one direction, got ",
              directions.sizes());
  TORCH_CHECK(directions.scalar_type() == type, kOp,
              ": expected directions of the same type as x, ", type, ", got ",
              directions.scalar_type());
}

Pair make_outputs(const Favor& favor, const Tensor& x, const Tensor& directions) {
  const int64_t f = favor.width(directions.size(0));
  const Tensor y = at::empty({x.size(0), x.size(1), x.size(2), f}, x.options());
  if (favor.kind == Favor::Kind::relu) return {y, at::empty({0}, x.options())};
  return {y, at::empty({x.size(0), x.size(1), x.size(2)}, x.options())};
}

/// The directions as a right factor, once for all heads.
template <class T>
Tensor pack(MatView<const T> b, int64_t d) {
  const Tensor to = at::empty({kernels::packed_size<T>(b.rows, b.cols)},
                              c10::CppTypeToScalarType<T>::value);
  const double factor = std::pow(static_cast<double>(d), -0.25);
  kernels::pack_panels<T>(b, static_cast<T>(factor), to.data_ptr<T>());
  return to;
}

template <class T>
MatView<const T> matrix(const Tensor& x) {
  return {x.data_ptr<T>(), x.size(0), x.size(1), x.stride(0), x.stride(1)};
}

/// Rows of a head, for a strip of rows; an empty view stays empty.
template <class T>
MatView<T> rows(MatView<T> x, const Strip& strip) {
  return x.data ? x.slice(strip.begin, strip.end) : x;
}

Pair favor_cpu(const Tensor& x, const Tensor& directions, StringView kind,
               double offset) {
  check(x, directions);
  const Favor favor = read(kind, offset);
  const int64_t m = directions.size(0), d = x.size(3);
  Tensor y, log_scale;
  std::tie(y, log_scale) = make_outputs(favor, x, directions);
  const Tensor scales = favor.kind == Favor::Kind::relu ? Tensor() : log_scale;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    const Tensor right = pack<scalar_t>(matrix<scalar_t>(directions).transposed(), d);
    const auto body = [&](Strip strip, scalar_t* own) {
      kernels::favor_rows<scalar_t>(
          favor, rows(head_view<const scalar_t>(x, strip.head), strip),
          right.data_ptr<scalar_t>(), m,
          rows(head_view<scalar_t>(y, strip.head), strip),
          rows(head_column<scalar_t>(scales, strip.head), strip), own);
    };
    for_each_strip<scalar_t>(x.size(0) * x.size(1), x.size(2),
                             kernels::favor_scratch<scalar_t>(m, d), body);
  });
  return {y, log_scale};
}

Pair favor_meta(const Tensor& x, const Tensor& directions, StringView kind,
                double offset) {
  check(x, directions);
  return make_outputs(read(kind, offset), x, directions);
}

void check_gradient(const Favor& favor, const OptionalTensor& dy,
                    const OptionalTensor& dlog_scale, const Tensor& x, const Tensor& y,
                    const Tensor& directions) {
  check(x, directions);
  const int64_t f = favor.width(directions.size(0));
  const std::vector<int64_t> like_y = {x.size(0), x.size(1), x.size(2), f};
  expect_tensor(kOp, "features", "[B, H, N, F]", y, like_y, x);
  if (dy) expect_tensor(kOp, "d_features", "[B, H, N, F]", *dy, like_y, x);
  if (dlog_scale)
    expect_tensor(kOp, "d_log_scale", "[B, H, N]", *dlog_scale,
                  {x.size(0), x.size(1), x.size(2)}, x);
}

Tensor gradient_cpu(const OptionalTensor& dy_in, const OptionalTensor& dlog_scale,
                    const Tensor& x, const Tensor& y, const Tensor& directions,
                    StringView kind, double offset) {
  const Favor favor = read(kind, offset);
  check_gradient(favor, dy_in, dlog_scale, x, y, directions);
  const int64_t m = directions.size(0), d = x.size(3);
  const Tensor dx = at::empty(x.sizes(), x.options());
  const Tensor dy = dy_in ? dy_in->contiguous() : y.new_zeros(y.sizes());
  const Tensor scales = dlog_scale.value_or(Tensor());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    const Tensor right = pack<scalar_t>(matrix<scalar_t>(directions), d);
    const auto body = [&](Strip strip, scalar_t* own) {
      kernels::favor_rows_gradient<scalar_t>(
          favor, rows(head_view<const scalar_t>(x, strip.head), strip),
          rows(head_view<const scalar_t>(y, strip.head), strip),
          rows(head_view<const scalar_t>(dy, strip.head), strip),
          rows(head_column<const scalar_t>(scales, strip.head), strip),
          right.data_ptr<scalar_t>(), m,
          rows(head_view<scalar_t>(dx, strip.head), strip), own);
    };
    for_each_strip<scalar_t>(x.size(0) * x.size(1), x.size(2),
                             kernels::favor_scratch<scalar_t>(m, d), body);
  });
  return dx;
}

Tensor gradient_meta(const OptionalTensor& dy, const OptionalTensor& dlog_scale,
                     const Tensor& x, const Tensor& y, const Tensor& directions,
                     StringView kind, double offset) {
  check_gradient(read(kind, offset), dy, dlog_scale, x, y, directions);
  return at::empty(x.sizes(), x.options());
}

auto& favor_operator() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::favor_features", "")
                             .typed<decltype(favor_cpu)>();
  return op;
}

Tensor call_gradient(const Tensor& dy, const Tensor& dlog_scale, const Tensor& x,
                     const Tensor& y, const Tensor& directions, StringView kind,
                     double offset) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::_favor_features_backward", "")
                             .typed<decltype(gradient_cpu)>();
  const auto optional = [](const Tensor& t) {
    return t.defined() ? OptionalTensor(t) : kNone;
  };
  return op.call(optional(dy), optional(dlog_scale), x, y, directions, kind, offset);
}

struct FavorFunction : torch::autograd::Function<FavorFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x,
                               const Tensor& directions, const std::string& kind,
                               double offset) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [y, log_scale] = favor_operator().call(x, directions, kind, offset);
    ctx->save_for_backward({x, directions, y});
    ctx->set_materialize_grads(false);
    ctx->saved_data["kind"] = kind;
    ctx->saved_data["offset"] = offset;
    if (kind == "relu") ctx->mark_non_differentiable({log_scale});
    return {y, log_scale};
  }

  // The derivative of an exponential is itself, so y is all it needs.
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const std::string kind = ctx->saved_data["kind"].toStringRef();
    Tensor dx;
    {
      at::AutoGradMode off(false);
      dx =
          call_gradient(grads[0], kind == "relu" ? Tensor() : grads[1], saved[0],
                        saved[2], saved[1], kind, ctx->saved_data["offset"].toDouble());
    }
    return once_differentiable(kOp, {saved[0], grads[0], grads[1]},
                               {dx, Tensor(), Tensor(), Tensor()});
  }
};

Pair favor_autograd(const Tensor& x, const Tensor& directions, StringView kind,
                    double offset) {
  // Returning no gradient would look to a learner like a gradient of zero.
  TORCH_CHECK(!directions.requires_grad() || !at::GradMode::is_enabled(), kOp,
              ": expected directions that need no gradient, got ones that do; they "
              "are drawn, not learned");
  const auto r = FavorFunction::apply(x, directions, std::string(kind), offset);
  return {r[0], r[1]};
}

}  // namespace

Features favor_features(const Tensor& x, const Tensor& directions,
                        const std::string& kind, double offset) {
  auto [y, log_scale] = favor_operator().call(x, directions, kind, offset);
  if (kind == "relu") return {y, {}};
  return {y, log_scale};
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "favor_features(Tensor x, Tensor directions, str kind=\"positive\", "
      "float offset=0.001) -> (Tensor features, Tensor log_scale)");
  m.def(
      "_favor_features_backward(Tensor? d_features, Tensor? d_log_scale, Tensor x, "
      "Tensor features, Tensor directions, str kind, float offset) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("favor_features", favor_cpu);
  m.impl("_favor_features_backward", gradient_cpu);
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("favor_features", favor_meta);
  m.impl("_favor_features_backward", gradient_meta);
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) { m.impl("favor_features", favor_autograd); }

}  // namespace lagwise::ops
