// cosFormer: relu features that fade with the distance by a quarter of a cosine.
//
//     weight(i, j) = relu(q_i) . relu(k_j) cos(pi (i - j) / (2 M))
//     features     = [relu(x_i) sin a_i, relu(x_i) cos a_i],  a_i = pi (i + 1) / (2 M)
//
// Shapes  F = 2 D.
// Options horizon (0: that of the placement): M. The paper takes the length of the
//         sequence, which changes earlier outputs as it grows; here M is fixed, and a
//         position at or past it is refused, because weights would turn negative.
// Paper   Qin et al., "cosFormer: Rethinking Softmax in Attention", ICLR 2022.
//         https://arxiv.org/abs/2202.08791

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>
#include <c10/util/StringUtil.h>

#include <numbers>
#include <stdexcept>

#include "lagwise/attention/feature_map.h"
#include "lagwise/ops/feature_map.h"

namespace lagwise {
namespace {

class CosFormer : public FeatureMap {
 public:
  explicit CosFormer(int64_t horizon) : horizon_(horizon) {}

  int64_t width(int64_t d) const override { return 2 * d; }
  Epsilon epsilon() const override { return {.value = 1e-6, .clamp = true}; }

  Features features(const at::Tensor& x, Side side, const at::Tensor&,
                    const Placement& at) const override {
    const bool query = side == Side::query;
    const int64_t horizon = horizon_ > 0 ? horizon_ : at.horizon;
    if (horizon <= 0)
      throw std::invalid_argument(
          "cosformer: expected a horizon, the longest position, got none; "
          "write cosformer:horizon=M");
    const at::Tensor where =
        positions(query ? at.query_at : at.key_at,
                  query ? at.query_start : at.key_start, x.size(2));
    check(where, horizon);
    const double turn = std::numbers::pi / (2 * static_cast<double>(horizon));
    const at::Tensor angle = ((where + 1) * turn).unsqueeze(-1);  // [1|B, 1, N, 1]
    const at::Tensor phi = ops::feature_map(x, "relu:offset=0");
    return {
        at::cat({phi * angle.sin().to(x.options()), phi * angle.cos().to(x.options())},
                -1),
        {}};
  }

  OneTokenMap one_token(const Draw&, int64_t, int64_t, int64_t horizon) const override {
    OneTokenMap map;
    map.pointwise = "relu";
    map.horizon = horizon_ > 0 ? horizon_ : horizon;
    return map;
  }

 private:
  /// In double, so that angles hold at any position: [1, 1, N] or [B, 1, N].
  static at::Tensor positions(const at::Tensor& given, int64_t start, int64_t rows) {
    if (!given.defined())
      return at::arange(start, start + rows, at::kDouble).view({1, 1, rows});
    const at::Tensor where = given.to(at::kDouble);
    if (where.dim() < 1 || where.dim() > 2 || where.size(-1) != rows)
      throw std::invalid_argument(
          c10::str("cosformer: expected positions [N] or [B, N] with N = ", rows,
                   ", got ", where.sizes()));
    return where.dim() == 2 ? where.unsqueeze(1) : where.view({1, 1, rows});
  }

  static void check(const at::Tensor& where, int64_t horizon) {
    if (where.numel() == 0) return;
    const double first = where.min().item<double>(), last = where.max().item<double>();
    if (first >= 0 && last < static_cast<double>(horizon)) return;
    throw std::invalid_argument(
        c10::str("cosformer: expected positions from 0 to below the horizon ", horizon,
                 ", got ", first < 0 ? first : last));
  }

  int64_t horizon_;
};

const RegisterFeatureMap cosformer_registered({
    .name = "cosformer",
    .summary = "relu times a quarter of a cosine of the distance, within a horizon",
    .paper = "arXiv:2202.08791",
    .make = [](Spec& spec) -> std::unique_ptr<FeatureMap> {
      const int64_t horizon = spec.take("horizon", 0);
      if (horizon < 0)
        throw std::invalid_argument(
            c10::str("cosformer: expected horizon >= 0, got ", horizon));
      return std::make_unique<CosFormer>(horizon);
    },
});

}  // namespace
}  // namespace lagwise
