#include "lagwise/ops/feature_map.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <stdexcept>

#include "lagwise/core/spec.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::FeatureMap;
using Kind = FeatureMap::Kind;

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

struct MapArguments {
  Tensor x;
  std::string map;
};

template <class Visit>
void each_argument(MapArguments& x, const Visit& visit) {
  visit(x.x), visit(x.map);
}

const DifferentiablePair kPair = {
    kOp, "lagwise::feature_map", "lagwise::_feature_map_backward", {0}, 1, 1, 0};

void map_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  MapArguments given;
  read_arguments(taken.data(), given);
  check(given.x);
  const FeatureMap map = read_feature_map(kOp, given.map);
  const Tensor x = given.x.contiguous(), out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
      kernels::map_rows<scalar_t>(map, piece<const scalar_t>(x, begin, end),
                                  piece<scalar_t>(out, begin, end));
    });
  });
  stack->emplace_back(out);
}

void slopes_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const Tensor& d_out = taken[0].toTensor();
  MapArguments given;
  read_arguments(&taken[2], given);  // after d_out, wanted
  check(given.x);
  TORCH_CHECK(
      d_out.sizes() == given.x.sizes() && d_out.scalar_type() == given.x.scalar_type(),
      kOp, ": expected a gradient like x, ", given.x.scalar_type(), " ",
      given.x.sizes(), ", got ", d_out.scalar_type(), " ", d_out.sizes());
  const FeatureMap map = read_feature_map(kOp, given.map);
  const Tensor x = given.x.contiguous(), grad = d_out.contiguous();
  const Tensor out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
      kernels::map_slopes<scalar_t>(map, piece<const scalar_t>(x, begin, end),
                                    piece<const scalar_t>(grad, begin, end),
                                    piece<scalar_t>(out, begin, end));
    });
  });
  stack->emplace_back(out);
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
  Stack stack;
  write_arguments(MapArguments{x, map}, stack);
  call_forward<kPair>(stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m, "feature_map(Tensor x, str map) -> Tensor");
  define(m,
         "_feature_map_backward(Tensor d_out, bool[] wanted, Tensor x, str map) -> "
         "Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("feature_map", CppFunction::makeFromBoxedFunction<map_op>());
  m.impl("_feature_map_backward", CppFunction::makeFromBoxedFunction<slopes_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("feature_map", CppFunction::makeFromBoxedFunction<differentiate<kPair>>());
  m.impl("_feature_map_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
