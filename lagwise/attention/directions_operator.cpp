#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <stdexcept>

#include "lagwise/attention/random_directions.h"
#include "lagwise/ops/encoded.h"
#include "lagwise/ops/torch/boxed.h"
#include "lagwise/ops/torch/define.h"

// The directions of FAVOR+ (random_directions.h) as an operator, for those who call the
// operator favor_features from another language.

namespace lagwise {
namespace {

/// What a call takes, in the order of its schema.
struct DirectionArguments {
  int64_t count, dim;
  DirectionChoice choice;
  int64_t layer;
  Draw draw;
};

template <class Visit>
void each_argument(DirectionArguments& x, const Visit& visit) {
  visit(x.count), visit(x.dim), visit(x.choice.orthogonal), visit(x.choice.chi_norms);
  visit(x.layer), visit(x.draw.seed), visit(x.draw.step), visit(x.draw.micro_step);
}

void directions_op(const c10::OperatorHandle& op, ops::Stack* stack) {
  const ops::Stack taken = ops::take_arguments(op, *stack);
  DirectionArguments x{};
  ops::read_arguments(taken.data(), x);
  TORCH_CHECK(x.count >= 0 && x.dim >= 1,
              "favor_directions: expected count >= 0 and dim >= 1, got ", x.count,
              " and ", x.dim);
  try {
    stack->emplace_back(random_directions(x.draw.noise(streams::kFavor), x.layer,
                                          x.count, x.dim, x.choice));
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "favor_directions: ", error.what());
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  ops::define(m,
              "favor_directions(SymInt count, SymInt dim, *, bool orthogonal=True, "
              "bool chi_norms=True, SymInt layer=0, SymInt seed=0, SymInt step=0, "
              "SymInt micro_step=0) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CompositeExplicitAutograd, m) {
  m.impl("favor_directions",
         torch::CppFunction::makeFromBoxedFunction<directions_op>());
}

}  // namespace lagwise
