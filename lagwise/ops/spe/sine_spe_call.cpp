#include "lagwise/ops/spe/sine_spe_call.h"

#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <numbers>
#include <vector>

namespace lagwise::ops {
namespace {

using at::Tensor;

void check_shape(const char* op, const char* name, const Tensor& x,
                 at::IntArrayRef sizes, at::ScalarType type) {
  TORCH_CHECK(x.sizes() == sizes && x.scalar_type() == type, op, ": expected ", name,
              " ", sizes, " of type ", type, ", got ", x.sizes(), " of type ",
              x.scalar_type());
}

Tensor check_positions(const char* op, const char* name, const Tensor& at, int64_t b,
                       int64_t rows) {
  const bool shared = at.dim() == 1 && at.size(0) == rows;
  TORCH_CHECK((shared || (at.dim() == 2 && at.size(0) == b && at.size(1) == rows)) &&
                  at.scalar_type() == at::kDouble,
              op, ": expected ", name, " [", rows, "] or [", b, ", ", rows,
              "] of type Double, got ", at.sizes(), " of type ", at.scalar_type());
  return (shared ? at.unsqueeze(0) : at).contiguous();
}

void check_mixing(const char* op, SineCall& call, const SineMixing& mixing) {
  const auto& [z, gate, fold, width] = mixing;
  TORCH_CHECK(z.defined() != fold.defined(), op,
              ": expected either dense noise z or a fold, got ",
              z.defined() ? "both" : "neither");
  TORCH_CHECK(width >= 1, op, ": expected width >= 1, got ", width);
  const auto type = call.q.scalar_type();
  if (fold.defined()) {
    check_shape(op, "fold", fold, {call.h, call.d * call.waves()}, at::kLong);
    call.fold = fold.contiguous();
    const auto* place = call.fold.data_ptr<int64_t>();
    for (int64_t i = 0; i < call.fold.numel(); ++i)
      TORCH_CHECK(place[i] != 0 && std::abs(place[i]) <= width, op,
                  ": expected every |fold| in [1, width = ", width, "], got ",
                  place[i]);
    return;
  }
  check_shape(op, "z", z, {call.h, call.d, 2 * call.sines, width}, type);
  call.z = z.contiguous();
  TORCH_CHECK(gate.defined() == call.constant.defined(), op,
              ": expected the noise of a gate just where there is a constant");
  if (!gate.defined()) return;
  check_shape(op, "gate", gate, {call.h, call.d, width}, type);
  call.gate = gate.contiguous();
}

void check_waves(const char* op, SineCall& call, const SineWaves& waves) {
  TORCH_CHECK(waves.frequency.dim() == 3, op, ": expected frequency [", call.h, ", ",
              call.d, ", K], got ", waves.frequency.sizes());
  call.sines = waves.frequency.size(2);
  const std::vector<int64_t> sizes = {call.h, call.d, call.sines};
  check_shape(op, "frequency", waves.frequency, sizes, at::kDouble);
  check_shape(op, "phase", waves.phase, sizes, at::kDouble);
  check_shape(op, "amplitude", waves.amplitude, sizes, at::kDouble);
  call.frequency = waves.frequency.contiguous();
  call.turns = (waves.phase / (2 * std::numbers::pi)).contiguous();
  call.amplitude = waves.amplitude.contiguous();
  if (!waves.constant.defined()) return;
  check_shape(op, "constant", waves.constant, {call.h, call.d}, at::kDouble);
  call.constant = waves.constant.contiguous();
}

}  // namespace

SineCall check_sine_spe(const char* op, const SineArguments& given) {
  const Tensor &q = given.q, &k = given.k;
  TORCH_CHECK(q.dim() == 4 && at::isFloatingType(q.scalar_type()), op,
              ": expected q [B, H, N, D] of type Float or Double, got ", q.sizes(),
              " of type ", q.scalar_type());
  TORCH_CHECK(k.dim() == 4 && k.size(0) == q.size(0) && k.size(1) == q.size(1) &&
                  k.size(3) == q.size(3) && k.scalar_type() == q.scalar_type(),
              op, ": expected k [", q.size(0), ", ", q.size(1), ", M, ", q.size(3),
              "] of type ", q.scalar_type(), ", got ", k.sizes(), " of type ",
              k.scalar_type());
  SineCall call;
  call.q = q, call.k = k;
  call.b = q.size(0), call.h = q.size(1), call.d = q.size(3);
  call.width = given.mixing.width;
  check_waves(op, call, given.waves);
  call.q_at = check_positions(op, "q_at", given.q_at, call.b, q.size(2));
  call.k_at = check_positions(op, "k_at", given.k_at, call.b, k.size(2));
  check_mixing(op, call, given.mixing);
  return call;
}

}  // namespace lagwise::ops
