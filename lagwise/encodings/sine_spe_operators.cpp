#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <string>

#include "lagwise/encodings/sine_spe_noise.h"
#include "lagwise/ops/torch/boxed.h"
#include "lagwise/ops/torch/define.h"

// The random numbers of SineSPE (sine_spe_noise.h) as operators, for those who call the
// operator sine_spe from another language.

namespace lagwise {
namespace {

using ops::Stack;

/// What both operators take, in the order of their schema.
struct SineNoiseArguments {
  SineSpeNoise::Shape shape;
  int64_t layer;
  Draw draw;
};

template <class Visit>
void each_argument(SineNoiseArguments& x, const Visit& visit) {
  visit(x.shape.heads), visit(x.shape.dim), visit(x.shape.sines), visit(x.shape.width);
  visit(x.shape.gated), visit(x.shape.shared), visit(x.layer);
  visit(x.draw.seed), visit(x.draw.step), visit(x.draw.micro_step);
}

const std::string kSineNoiseSchema =
    "SymInt heads, SymInt dim, SymInt sines, SymInt width, *, bool gated=True, "
    "bool shared=True, SymInt layer=0, SymInt seed=0, SymInt step=0, "
    "SymInt micro_step=0";

SineNoiseArguments read_sine_noise(const char* op, const c10::IValue* from) {
  SineNoiseArguments x{};
  ops::read_arguments(from, x);
  const auto& [heads, dim, sines, width, gated, shared] = x.shape;
  TORCH_CHECK(heads >= 0 && dim >= 0 && sines >= 0 && width >= 1, op,
              ": expected heads, dim and sines >= 0 and width >= 1, got ", heads, ", ",
              dim, ", ", sines, " and ", width);
  return x;
}

/// z [H, D, 2K, R] and the gate's [H, D, R], empty where there is none.
void sine_noise_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = ops::take_arguments(op, *stack);
  const auto x = read_sine_noise("sine_spe_noise", taken.data());
  const auto type = static_cast<at::ScalarType>(taken.back().toInt());
  TORCH_CHECK(type == at::kFloat || type == at::kDouble,
              "sine_spe_noise: expected Float or Double, got ", type);
  SineSpeNoise noise(x.shape);
  try {
    stack->emplace_back(noise.code(x.draw, x.layer, type));
    stack->emplace_back(x.shape.gated ? noise.gate(x.draw, x.layer, type)
                                      : at::empty({0}, type));
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "sine_spe_noise: ", error.what());
  }
}

void sine_fold_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = ops::take_arguments(op, *stack);
  const auto x = read_sine_noise("sine_spe_fold", taken.data());
  try {
    stack->emplace_back(SineSpeNoise(x.shape).fold(x.draw, x.layer));
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "sine_spe_fold: ", error.what());
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  ops::define(m, "sine_spe_noise(" + kSineNoiseSchema +
                     ", ScalarType dtype=6) -> (Tensor z, Tensor gate)");
  ops::define(m, "sine_spe_fold(" + kSineNoiseSchema + ") -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CompositeExplicitAutograd, m) {
  using torch::CppFunction;
  m.impl("sine_spe_noise", CppFunction::makeFromBoxedFunction<sine_noise_op>());
  m.impl("sine_spe_fold", CppFunction::makeFromBoxedFunction<sine_fold_op>());
}

}  // namespace lagwise
