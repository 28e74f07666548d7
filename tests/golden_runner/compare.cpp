#include "tests/golden_runner/compare.h"

#include <ATen/ATen.h>

#include <sstream>

namespace lagwise::golden {
namespace {

at::Tensor without_leading_ones(at::Tensor x, int64_t axes) {
  while (x.dim() > axes && x.size(0) == 1) x = x.squeeze(0);
  return x;
}

}  // namespace

std::string difference(const at::Tensor& got_in, const at::Tensor& want,
                       Tolerance allowed) {
  if (!got_in.defined()) return "nothing was computed";
  const at::Tensor got =
      without_leading_ones(got_in.detach().to(at::kDouble), want.dim());
  std::ostringstream text;
  if (got.sizes() != want.sizes()) {
    text << "shape " << got.sizes() << ", want " << want.sizes();
    return text.str();
  }
  if (want.numel() == 0) return "";
  const at::Tensor target = want.to(at::kDouble);
  // Equal infinities are close, though their difference is no number.
  const at::Tensor gap = (got - target).abs().masked_fill(got.eq(target), 0);
  const double typical = target.square().mean().sqrt().item<double>();
  const at::Tensor size = target.abs().clamp_min(typical);
  const at::Tensor excess = (gap - (size * allowed.rtol + allowed.atol))
                                .nan_to_num(/*nan=*/HUGE_VAL)
                                .flatten();
  const int64_t at = excess.argmax().item<int64_t>();
  if (excess[at].item<double>() <= 0) return "";
  const int64_t wrong = excess.gt(0).sum().item<int64_t>();
  text.precision(12);
  text << wrong << " of " << want.numel() << " elements differ; worst is number " << at
       << ": got " << got.flatten()[at].item<double>() << ", want "
       << target.flatten()[at].item<double>();
  text.precision(3);
  text << ", off by " << gap.flatten()[at].item<double>() << " (rtol " << allowed.rtol
       << ", atol " << allowed.atol << ")";
  return text.str();
}

}  // namespace lagwise::golden
