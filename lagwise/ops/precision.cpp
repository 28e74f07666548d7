#include "lagwise/ops/precision.h"

namespace lagwise::ops {
namespace {

thread_local Precision now = Precision::full;

}  // namespace

Precision precision() { return now; }

WithPrecision::WithPrecision(Precision precision) : before_(now) { now = precision; }
WithPrecision::~WithPrecision() { now = before_; }

at::Tensor in_precision(const at::Tensor& x, Precision precision) {
  const bool rounds =
      precision == Precision::bf16 && x.defined() && x.scalar_type() == at::kFloat;
  return rounds ? x.to(at::kBFloat16) : x;
}

at::Tensor widened(const at::Tensor& x) {
  const bool was_rounded = x.defined() && x.scalar_type() == at::kBFloat16;
  return was_rounded ? x.to(at::kFloat) : x;
}

}  // namespace lagwise::ops
