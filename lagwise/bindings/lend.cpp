#include "lagwise/bindings/lend.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <sstream>
#include <stdexcept>

namespace lagwise::bindings {
namespace {

void check_lent(const Parameters& own, const std::vector<at::Tensor>& lent) {
  if (own.size() != lent.size())
    throw std::invalid_argument("expected " + std::to_string(own.size()) +
                                " parameters, got " + std::to_string(lent.size()));
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].second.sizes() == lent[i].sizes()) continue;
    std::ostringstream text;
    text << "parameter " << own[i].first << ": expected " << own[i].second.sizes()
         << ", got " << lent[i].sizes();
    throw std::invalid_argument(text.str());
  }
}

}  // namespace

void lend(const Parameters& own, const std::vector<at::Tensor>& lent) {
  namespace autograd = torch::autograd::impl;
  check_lent(own, lent);
  for (size_t i = 0; i < own.size(); ++i) {
    at::Tensor mine = own[i].second;
    const at::Tensor& theirs = lent[i];
    mine.set_requires_grad(false);
    mine.set_data(theirs.detach());
    autograd::set_version_counter(mine, autograd::version_counter(theirs));
    if (at::GradMode::is_enabled() && theirs.requires_grad())
      autograd::set_gradient_edge(mine, autograd::gradient_edge(theirs));
  }
}

}  // namespace lagwise::bindings
