#include <cmath>

#include "lagwise/encodings/testing_scores.h"

namespace lagwise {
namespace {

TEST(Huang, ReadsItsTableByLagInAnyAttention) {
  const auto huang = make_encoding("huang:max=320", {.heads = 2, .dim = 4});
  const Layer layer = testing::double_layer(*huang);
  const double* e = layer["E"].data_ptr<double>();  // [4, 639]
  testing::expect_scores(
      *huang, layer,
      [&](int64_t, const double* q, const double* k, int64_t lag, const auto&) {
        double s = testing::dot(q, k, 4);
        for (int64_t d = 0; d < 4; ++d) s += q[d] * e[d * 639 + lag + 319];
        return s / 2;
      });
}

TEST(Huang, ClampsWhatLiesBeyondItsTable) {
  const auto huang = make_encoding("huang:max=5,beyond=clamp", {.heads = 2, .dim = 4});
  const Layer layer = testing::double_layer(*huang);
  const double* e = layer["E"].data_ptr<double>();  // [4, 9]
  testing::expect_scores(
      *huang, layer,
      [&](int64_t, const double* q, const double* k, int64_t lag, const auto&) {
        double s = testing::dot(q, k, 4);
        for (int64_t d = 0; d < 4; ++d)
          s += q[d] * e[d * 9 + std::clamp<int64_t>(lag, -4, 4) + 4];
        return s / 2;
      });
}

TEST(Huang, LearnsATablePerHeadIfAsked) {
  const auto huang = make_encoding("huang:max=320,tables=head", {.heads = 3, .dim = 4});
  const Layer layer = testing::double_layer(*huang);
  ASSERT_EQ(layer["E"].sizes(), at::IntArrayRef({3, 4, 639}));
  const double* e = layer["E"].data_ptr<double>();
  testing::expect_scores(
      *huang, layer,
      [&](int64_t h, const double* q, const double* k, int64_t lag, const auto&) {
        double s = testing::dot(q, k, 4);
        for (int64_t d = 0; d < 4; ++d) s += q[d] * e[(h * 4 + d) * 639 + lag + 319];
        return s / 2;
      });
}

TEST(Huang, AddsNothingBeyondItsTableIfAsked) {
  const auto huang = make_encoding("huang:max=5,beyond=zero", {.heads = 2, .dim = 4});
  const Layer layer = testing::double_layer(*huang);
  const double* e = layer["E"].data_ptr<double>();  // [4, 9]
  testing::expect_scores(
      *huang, layer,
      [&](int64_t, const double* q, const double* k, int64_t lag, const auto&) {
        double s = testing::dot(q, k, 4);
        if (std::abs(lag) < 5)
          for (int64_t d = 0; d < 4; ++d) s += q[d] * e[d * 9 + lag + 4];
        return s / 2;
      });
}

// As tensor2tensor has it: a table per head, padded with zeros on the side of far lags.
TEST(Huang, PadsTheCausalTablesOfItsAuthorsWithZeros) {
  const auto huang = make_encoding("huang:max=7,form=causal,tables=head,beyond=zero",
                                   {.heads = 2, .dim = 4});
  const Layer layer = testing::double_layer(*huang);
  ASSERT_EQ(layer["E"].sizes(), at::IntArrayRef({2, 7, 4}));
  const double* e = layer["E"].data_ptr<double>();
  testing::expect_scores(
      *huang, layer,
      [&](int64_t h, const double* q, const double* k, int64_t lag, const auto&) {
        const double by_lag =
            lag < 7 ? testing::dot(q, e + (h * 7 + 6 - lag) * 4, 4) : 0;
        return (testing::dot(q, k, 4) + by_lag) / 2;
      },
      {{}, {9, 9, 0, 0, true}, {1, 320, 319, 0, true}});
}

TEST(Huang, StoresACausalTableAsItsAuthorsDo) {
  const auto huang = make_encoding("huang:max=320,form=causal", {.heads = 2, .dim = 4});
  const Layer layer = testing::double_layer(*huang);
  const double* e = layer["E"].data_ptr<double>();  // [320, 4]
  testing::expect_scores(
      *huang, layer,
      [&](int64_t, const double* q, const double* k, int64_t lag, const auto&) {
        return (testing::dot(q, k, 4) + testing::dot(q, e + (319 - lag) * 4, 4)) / 2;
      },
      {{}, {9, 9, 0, 0, true}, {1, 320, 319, 0, true}});
}

TEST(Huang, SendsGradientsToItsTable) {
  for (const char* text : {"huang:max=40", "huang:max=40,form=causal",
                           "huang:max=9,tables=head,beyond=zero",
                           "huang:max=9,form=causal,tables=head,beyond=zero"}) {
    const auto huang = make_encoding(text, {.heads = 2, .dim = 4});
    Layer layer = testing::double_layer(*huang);
    testing::expect_gradients(*huang, layer);
  }
}

TEST(Huang, RefusesLagsBeyondItsTable) {
  const auto huang = make_encoding("huang:max=8", {.heads = 2, .dim = 4});
  const at::Tensor x = testing::random_rows(2, 8, 4, 1).to(at::kFloat);
  EXPECT_NO_THROW(encode_once(*huang, x, x, {}));
  const auto said = [&](const Placement& at) {
    return testing::refusal([&] { encode_once(*huang, x, x, at); });
  };
  EXPECT_NE(said(testing::placed(1, 0, true)).find("below max = 8, got 8"),
            std::string::npos);
  EXPECT_EQ(said(testing::placed(0, 1, true)),
            "nothing was refused");  // the future is hidden
  EXPECT_NE(said(testing::placed(0, 1, false)).find("got 8"), std::string::npos);
}

TEST(Huang, RefusesPositionsAndACausalTableInFullAttention) {
  const auto huang = make_encoding("huang", {.heads = 2, .dim = 4});
  testing::expect_refuses_positions(*huang);
  const auto causal = make_encoding("huang:form=causal", {.heads = 2, .dim = 4});
  const at::Tensor x = testing::random_rows(2, 8, 4, 1).to(at::kFloat);
  EXPECT_NE(testing::refusal([&] {
              encode_once(*causal, x, x, testing::placed(0, 0, false));
            }).find("expected form=any"),
            std::string::npos);
}

}  // namespace
}  // namespace lagwise
