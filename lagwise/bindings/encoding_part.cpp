// An encoding by itself: what it does to an input x, or to queries and keys.
//
//     x [B, N, C]                        -> x with positions in it
//     q [B, H, N, D], k [B, H, M, D]     -> q', k', then those of lag_bias, lag_keys,
//                                           lag_values and decay that it has
//
// Its facts say which of these come (`results`), with the scale of scores.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "lagwise/bindings/part.h"
#include "lagwise/bindings/placed_encoding.h"

namespace lagwise::bindings {
namespace {

struct NamedResult {
  const char* name;
  at::Tensor tensor;
};

std::vector<NamedResult> results_of(const Encoded& encoded) {
  std::vector<NamedResult> results = {{"q", encoded.q}, {"k", encoded.k}};
  for (const NamedResult& one : {NamedResult{"lag_bias", encoded.lag_bias},
                                 NamedResult{"lag_keys", encoded.lag_keys},
                                 NamedResult{"lag_values", encoded.lag_values},
                                 NamedResult{"decay", encoded.decay}})
    if (one.tensor.defined()) results.push_back(one);
  return results;
}

class EncodingPart : public Part {
 public:
  explicit EncodingPart(const Json& config) : placed_(config) {}

  Parameters parameters() const override { return placed_.parameters(""); }

  std::vector<at::Tensor> call(const Inputs& inputs) override {
    if (inputs.has("x")) {
      const at::Tensor x = inputs.need("x");
      return {placed_.encoding->embed(x, placed_.pass(inputs, x.size(1), 0).at)};
    }
    std::vector<at::Tensor> tensors;
    for (const NamedResult& one :
         results_of(encode(inputs.need("q"), inputs.need("k"), inputs)))
      tensors.push_back(one.tensor);
    return tensors;
  }

  Json facts() const override {
    const at::NoGradGuard no_graph;
    const HeadShape& shape = placed_.encoding->shape();
    const at::Tensor row = at::zeros({1, shape.heads, 1, shape.dim}, at::kFloat);
    const Encoded encoded = encode(row, row, Inputs({}, {}));
    Json facts = placed_.facts();
    facts["scale"] = encoded.scale;
    for (const NamedResult& one : results_of(encoded))
      facts["results"].push_back({one.name, one.tensor.sizes().vec()});
    return facts;
  }

 private:
  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Inputs& inputs) const {
    const nn::Pass pass = placed_.pass(inputs, q.size(2), k.size(2));
    return placed_.encoding->encode(q, k, pass.code, placed_.layer, pass.at);
  }

  PlacedEncoding placed_;
};

const RegisterPart encoding_part_registered({
    .name = "encoding",
    .make = [](const Json& config) -> std::unique_ptr<Part> {
      return std::make_unique<EncodingPart>(config);
    },
});

}  // namespace
}  // namespace lagwise::bindings
