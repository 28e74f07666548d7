#include "lagwise/ops/favor.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cmath>
#include <string>
#include <vector>

#include "lagwise/kernels/favor.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::Favor;

constexpr const char* kOp = "favor_features";

/// What a call takes, in the order of its schema.
struct FavorArguments {
  Tensor x, directions;
  std::string kind;
  double offset;
};

template <class Visit>
void each_argument(FavorArguments& x, const Visit& visit) {
  visit(x.x), visit(x.directions), visit(x.kind), visit(x.offset);
}

const DifferentiablePair kPair = {
    kOp, "lagwise::favor_features", "lagwise::_favor_features_backward", {0}, 2, 2};

Favor read_kind(const std::string& kind, double offset) {
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

/// favor_features: y, and the log_scale of its rows; relu has none.
void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  FavorArguments given;
  read_arguments(taken.data(), given);
  const Tensor &x = given.x, &directions = given.directions;
  check(x, directions);
  const Favor favor = read_kind(given.kind, given.offset);
  const int64_t m = directions.size(0), d = x.size(3);
  const std::vector<int64_t> rows_of_x = {x.size(0), x.size(1), x.size(2)};
  std::vector<int64_t> shape = rows_of_x;
  shape.push_back(favor.width(m));
  const Tensor y = at::empty(shape, x.options());
  const Tensor scales =
      favor.kind == Favor::Kind::relu ? Tensor() : at::empty(rows_of_x, x.options());
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
  stack->emplace_back(y);
  stack->emplace_back(scales.defined() ? scales : at::empty({0}, x.options()));
}

/// _favor_features_backward: dx. The derivative of an exponential is itself, so y is all
/// that it needs of the forward pass.
void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  Tensor d_y, d_scales;
  read(taken[0], d_y);
  read(taken[1], d_scales);
  const Tensor& y = taken[3].toTensor();  // after wanted, before log_scale
  FavorArguments given;
  read_arguments(&taken[5], given);
  const Tensor &x = given.x, &directions = given.directions;
  const Favor favor = read_kind(given.kind, given.offset);
  check(x, directions);
  const int64_t m = directions.size(0), d = x.size(3);
  const std::vector<int64_t> like_y = {x.size(0), x.size(1), x.size(2), favor.width(m)};
  expect_tensor(kOp, "features", "[B, H, N, F]", y, like_y, x);
  if (d_y.defined()) expect_tensor(kOp, "d_features", "[B, H, N, F]", d_y, like_y, x);
  if (favor.kind == Favor::Kind::relu) d_scales = Tensor();
  if (d_scales.defined())
    expect_tensor(kOp, "d_log_scale", "[B, H, N]", d_scales,
                  {x.size(0), x.size(1), x.size(2)}, x);
  const Tensor dx = at::empty(x.sizes(), x.options());
  const Tensor dy = d_y.defined() ? d_y.contiguous() : y.new_zeros(y.sizes());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    const Tensor right = pack<scalar_t>(matrix<scalar_t>(directions), d);
    const auto body = [&](Strip strip, scalar_t* own) {
      kernels::favor_rows_gradient<scalar_t>(
          favor, rows(head_view<const scalar_t>(x, strip.head), strip),
          rows(head_view<const scalar_t>(y, strip.head), strip),
          rows(head_view<const scalar_t>(dy, strip.head), strip),
          rows(head_column<const scalar_t>(d_scales, strip.head), strip),
          right.data_ptr<scalar_t>(), m,
          rows(head_view<scalar_t>(dx, strip.head), strip), own);
    };
    for_each_strip<scalar_t>(x.size(0) * x.size(1), x.size(2),
                             kernels::favor_scratch<scalar_t>(m, d), body);
  });
  stack->emplace_back(dx);
}

/// Under torch's key Autograd, above both.
void forward_autograd(const c10::OperatorHandle& op, Stack* stack) {
  FavorArguments x;
  read_call(op, *stack, x);
  // Returning no gradient would look to a learner like a gradient of zero.
  TORCH_CHECK(!x.directions.requires_grad() || !at::GradMode::is_enabled(), kOp,
              ": expected directions that need no gradient, got ones that do; they "
              "are drawn, not learned");
  differentiate<kPair>(op, stack);
}

}  // namespace

Features favor_features(const Tensor& x, const Tensor& directions,
                        const std::string& kind, double offset) {
  Stack stack;
  write_arguments(FavorArguments{x, directions, kind, offset}, stack);
  call_forward<kPair>(stack);
  if (kind == "relu") return {stack[0].toTensor(), {}};
  return {stack[0].toTensor(), stack[1].toTensor()};
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m,
         "favor_features(Tensor x, Tensor directions, str kind=\"positive\", "
         "float offset=0.001) -> (Tensor features, Tensor log_scale)");
  define(m,
         "_favor_features_backward(Tensor? d_features, Tensor? d_log_scale, "
         "bool[] wanted, Tensor features, Tensor log_scale, Tensor x, "
         "Tensor directions, str kind, float offset) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("favor_features", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_favor_features_backward", CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("favor_features", CppFunction::makeFromBoxedFunction<forward_autograd>());
  m.impl("_favor_features_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
