#include <c10/core/GradMode.h>

#include <cmath>

#include "lagwise/encodings/testing_scores.h"

namespace lagwise {
namespace {

TEST(Kerple, PenalisesDistanceByItsKernel) {
  for (const bool power : {false, true}) {
    const auto kerple =
        make_encoding(power ? "kerple:kind=power" : "kerple", {.heads = 3, .dim = 4});
    Layer layer = testing::double_layer(*kerple);
    {
      const c10::NoGradGuard constant;
      const at::Tensor &r1 = layer["r1"], &r2 = layer["r2"];
      r1[0].fill_(-3);  // clamped
      r2[1].fill_(0.001);
      if (power) r2[2].fill_(2.5);
    }
    const double* r1 = layer["r1"].data_ptr<double>();
    const double* r2 = layer["r2"].data_ptr<double>();
    testing::expect_scores(
        *kerple, layer,
        [&](int64_t h, const double* q, const double* k, int64_t lag, const auto&) {
          const double a = std::max(r1[h], 0.01), x = std::abs(double(lag));
          const double b = std::max(r2[h], 0.01);
          const double bias = power ? (x == 0 ? 0 : std::pow(x, std::min(b, 2.0)))
                                    : std::log(1 + b * x);
          return testing::dot(q, k, 4) / 2 - a * bias;
        });
  }
}

TEST(Kerple, SendsGradientsToBothParameters) {
  for (const char* text : {"kerple", "kerple:kind=power"}) {
    const auto kerple = make_encoding(text, {.heads = 3, .dim = 4});
    Layer layer = testing::double_layer(*kerple);
    testing::expect_gradients(*kerple, layer);
  }
}

TEST(Kerple, RefusesPositionsAndAnUnknownKind) {
  const auto kerple = make_encoding("kerple", {.heads = 2, .dim = 4});
  testing::expect_refuses_positions(*kerple);
  EXPECT_NE(testing::refusal([] {
              make_encoding("kerple:kind=sine", {2, 3});
            }).find("log, power"),
            std::string::npos);
}

}  // namespace
}  // namespace lagwise
