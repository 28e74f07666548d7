#include "lagwise/ops/noise.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <span>
#include <stdexcept>

#include "lagwise/ops/torch/boxed.h"
#include "lagwise/ops/torch/define.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

constexpr const char* kOp = "noise";

/// What a call takes, in the order of its schema.
struct NoiseArguments {
  std::string kind;
  int64_t count, first;
  uint64_t seed;
  int64_t stream, step, micro_step;
  NoiseAt at;
  int64_t type;  // an at::ScalarType
};

template <class Visit>
void each_argument(NoiseArguments& x, const Visit& visit) {
  visit(x.kind), visit(x.count), visit(x.first), visit(x.seed), visit(x.stream);
  visit(x.step), visit(x.micro_step), visit(x.at.layer), visit(x.at.head);
  visit(x.at.feature), visit(x.at.realisation), visit(x.type);
}

template <class T>
void fill(const std::string& kind, const NoiseRow& row, int64_t first,
          std::span<T> out) {
  if (kind == "uniform") return row.fill_uniform(first, out);
  if (kind == "normal") return row.fill_normal(first, out);
  TORCH_CHECK(kind == "sign", kOp, ": expected kind uniform, normal or sign, got '",
              kind, "'");
  row.fill_sign(first, out);
}

void noise_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  NoiseArguments x;
  read_arguments(taken.data(), x);
  try {
    stack->emplace_back(noise(x.kind, Noise(x.seed, x.stream, x.step, x.micro_step),
                              x.at, x.first, x.count,
                              static_cast<at::ScalarType>(x.type)));
  } catch (const std::invalid_argument& error) {  // a coordinate out of range
    TORCH_CHECK(false, kOp, ": ", error.what());
  }
}

}  // namespace

Tensor noise(const std::string& kind, const Noise& noise, const NoiseAt& at,
             int64_t first, int64_t count, at::ScalarType type) {
  TORCH_CHECK(count >= 0, kOp, ": expected count >= 0, got ", count);
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected Float or Double, got ", type);
  const Tensor out = at::empty({count}, type);
  AT_DISPATCH_FLOATING_TYPES(type, kOp, [&] {
    fill<scalar_t>(kind, noise.at(at), first,
                   {out.data_ptr<scalar_t>(), static_cast<size_t>(count)});
  });
  return out;
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m,
         "noise(str kind, SymInt count, *, SymInt first=0, SymInt seed=0, "
         "SymInt stream=0, SymInt step=0, SymInt micro_step=0, SymInt layer=0, "
         "SymInt head=0, SymInt feature=0, SymInt realisation=0, "
         "ScalarType dtype=6) -> Tensor");
}
// Without a tensor among its arguments, no device chooses the kernel.
TORCH_LIBRARY_IMPL(lagwise, CompositeExplicitAutograd, m) {
  m.impl("noise", torch::CppFunction::makeFromBoxedFunction<noise_op>());
}

}  // namespace lagwise::ops
