// A learned vector per position, added to the input.
//
//     x_p + table[p]
//
// Shapes      x [B, N, C]; table [max, C].
// Parameters  shared: "table", normal with standard deviation 0.02.
// Options     max (512): positions 0..max-1; a position beyond is refused.
// Paper       Gehring et al., "Convolutional Sequence to Sequence Learning", 2017.
//             https://arxiv.org/abs/1705.03122

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>

#include <cmath>
#include <span>
#include <stdexcept>

#include "lagwise/encodings/coordinates.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

constexpr double kSpread = 0.02;

class Learned : public Encoding {
 public:
  Learned(const HeadShape& shape, int64_t most)
      : Encoding({.exact = true,
                  .linear_causal = true,
                  .linear_full = true,
                  .stage = Traits::Stage::input,
                  .relative = false,
                  .longest = "table"},
                 shape),
        table_(at::empty({most, shape.model_width()}, at::kFloat)) {
    const Noise noise(shape.seed, streams::kParameters);
    const auto width = size_t(shape.model_width());
    for (int64_t p = 0; p < most; ++p)
      noise.at({.feature = p})
          .fill_normal(0,
                       std::span(table_.data_ptr<float>() + p * int64_t(width), width));
    table_.mul_(kSpread);
  }

  Parameters shared() override { return {{"table", table_}}; }

  at::Tensor embed(const at::Tensor& x, const Placement& at) override {
    check_grid(at, 1, "learned");
    const int64_t rows = x.size(1), skipped = unplaced_queries(at, rows);
    const at::Tensor p = query_coordinates(at, rows).squeeze(2).to(at::kLong);
    check_positions(p);
    at::Tensor e = at::embedding(table_, p).to(x.scalar_type());  // [B|1, N, C]
    if (skipped > 0) {
      const at::Tensor placed = at::empty({rows, 1}, x.options()).fill_(1);
      placed.narrow(0, 0, skipped).zero_();
      e = e * placed;
    }
    return x + e;
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&, const Layer&,
                 const Placement&) override {
    return {.q = q, .k = k, .scale = 1 / std::sqrt(double(shape().dim))};
  }

  OneTokenInput one_token_input() const override {
    OneTokenInput input;
    input.table = ops::numbers_of<float>(table_);
    return input;
  }
  std::optional<OneTokenPlace> one_token(const Layer&, const Draw&, int64_t) override {
    return as_they_are();
  }

 private:
  void check_positions(const at::Tensor& p) const {
    if (p.numel() == 0) return;
    const auto low = p.min().item<int64_t>(), high = p.max().item<int64_t>();
    if (low >= 0 && high < table_.size(0)) return;
    throw std::invalid_argument(
        "learned: position " + std::to_string(low < 0 ? low : high) +
        " is not in its table of " + std::to_string(table_.size(0)) +
        " positions (0 to " + std::to_string(table_.size(0) - 1) +
        "); make it with a larger max=");
  }

  at::Tensor table_;  // [max, C]
};

const RegisterEncoding learned_registered({
    .name = "learned",
    .summary = "a learned vector per position, added to the input",
    .paper = "arXiv:1705.03122",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      const int64_t most = spec.take("max", 512);
      if (most < 1 || most >= (1 << 24))
        throw std::invalid_argument("learned: expected max from 1 to 16777215, got " +
                                    std::to_string(most));
      return std::make_unique<Learned>(shape, most);
    },
});

}  // namespace
}  // namespace lagwise
