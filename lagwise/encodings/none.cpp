// No positions at all: the baseline. A causal model still learns some from its mask.
//
//     q' = q,  k' = k
//
// Options none.
// Paper   Kazemnejad et al., "The Impact of Positional Encoding on Length
//         Generalization in Transformers", 2023. https://arxiv.org/abs/2305.19466

#include <cmath>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

class None : public Encoding {
 public:
  explicit None(const HeadShape& shape)
      : Encoding({.exact = true,
                  .linear_causal = true,
                  .linear_full = true,
                  .stage = Traits::Stage::input,
                  .dims = 3},
                 shape) {}

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&, const Layer&,
                 const Placement&) override {
    return {.q = q, .k = k, .scale = 1 / std::sqrt(double(shape().dim))};
  }

  std::optional<OneTokenPlace> one_token(const Layer&, const Draw&, int64_t) override {
    return as_they_are();
  }
};

const RegisterEncoding none_registered({
    .name = "none",
    .summary = "no positions; order reaches a model through the causal mask alone",
    .paper = "arXiv:2305.19466",
    .make = [](Spec&, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      return std::make_unique<None>(shape);
    },
});

}  // namespace
}  // namespace lagwise
