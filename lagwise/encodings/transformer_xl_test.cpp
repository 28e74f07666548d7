#include <cmath>

#include "lagwise/encodings/testing_scores.h"

namespace lagwise {
namespace {

constexpr int64_t kHeads = 2, kDim = 4, kWidth = 6;

std::unique_ptr<Encoding> make() {
  return make_encoding("transformer_xl",
                       {.heads = kHeads, .dim = kDim, .model_dim = kWidth});
}

TEST(TransformerXl, AddsTheFourTermsOfThePaper) {
  const auto xl = make();
  const Layer layer = testing::double_layer(*xl);
  const double* u = layer["u"].data_ptr<double>();
  const double* v = layer["v_bias"].data_ptr<double>();
  const double* w = layer["W_R"].data_ptr<double>();
  testing::expect_scores(
      *xl, layer,
      [&](int64_t h, const double* q, const double* k, int64_t lag, const auto&) {
        double r[kWidth];
        for (int64_t x = 0; x < kWidth / 2; ++x) {
          const double angle =
              double(lag) * std::pow(10000.0, -2.0 * double(x) / kWidth);
          r[x] = std::sin(angle), r[x + kWidth / 2] = std::cos(angle);
        }
        double s = 0;
        for (int64_t d = 0; d < kDim; ++d) {
          const double projected = testing::dot(w + (h * kDim + d) * kWidth, r, kWidth);
          s += (q[d] + u[h * kDim + d]) * k[d] + (q[d] + v[h * kDim + d]) * projected;
        }
        return s / std::sqrt(double(kDim));
      });
}

TEST(TransformerXl, SendsGradientsToEveryParameter) {
  const auto xl = make();
  Layer layer = testing::double_layer(*xl);
  testing::expect_gradients(*xl, layer);
}

TEST(TransformerXl, RefusesPositions) { testing::expect_refuses_positions(*make()); }

}  // namespace
}  // namespace lagwise
