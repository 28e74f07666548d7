#include "lagwise/kernels/few_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using namespace lagwise::testing;

/// A matrix in panels, and what it stands for in double.
struct Weights {
  std::vector<float> f32, scales;
  std::vector<uint16_t> bf16;
  std::vector<int8_t> int8;
  std::vector<double> meant;  // [outputs, cols]
  PanelWeights panels;
};

double number(int64_t i) { return std::sin(1.7 * double(i) + 0.3) * 0.8; }

Weights weights(WeightType type, int64_t outputs, int64_t cols) {
  Weights w;
  w.panels = {type, outputs, cols, nullptr, nullptr};
  const int64_t panels = w.panels.panels(), blocks = w.panels.blocks();
  const auto size = static_cast<size_t>(panels * cols * kPanelOutputs);
  w.f32.resize(size), w.bf16.resize(size), w.int8.resize(size);
  w.scales.resize(static_cast<size_t>(panels * blocks * kPanelOutputs), 1.0f);
  w.meant.resize(static_cast<size_t>(outputs * cols));
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t panel = o / kPanelOutputs, lane = o % kPanelOutputs;
      const auto at = static_cast<size_t>((panel * cols + c) * kPanelOutputs + lane);
      const auto block = static_cast<size_t>(
          (panel * blocks + c / kScaledColumns) * kPanelOutputs + lane);
      double& meant = w.meant[static_cast<size_t>(o * cols + c)];
      const double x = number(o * cols + c);
      w.f32[at] = static_cast<float>(x);
      w.bf16[at] =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16);
      w.int8[at] = static_cast<int8_t>(std::lround(100 * x));
      w.scales[block] = 0.01f * static_cast<float>(1 + (o + c / kScaledColumns) % 3);
      meant = type == WeightType::f32 ? double(w.f32[at])
              : type == WeightType::bf16
                  ? double(std::bit_cast<float>(uint32_t(w.bf16[at]) << 16))
                  : double(w.int8[at]) * double(w.scales[block]);
    }
  w.panels.numbers = type == WeightType::f32 ? static_cast<const void*>(w.f32.data())
                     : type == WeightType::bf16
                         ? w.bf16.data()
                         : static_cast<const void*>(w.int8.data());
  if (type == WeightType::int8) w.panels.scales = w.scales.data();
  return w;
}

constexpr WeightType kTypes[] = {WeightType::f32, WeightType::bf16, WeightType::int8};

std::vector<float> inputs(int64_t rows, int64_t cols) {
  std::vector<float> x(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::cos(0.9 * double(i)));
  return x;
}

struct Sized {
  int64_t outputs, cols;
};
constexpr Sized kSizes[] = {{1, 1}, {16, 64}, {17, 63}, {40, 65}, {130, 200}};

TEST(FewRows, EqualTheirDefinition) {
  for (const WeightType type : kTypes)
    for (const Sized& size : kSizes) {
      const int64_t outputs = size.outputs, cols = size.cols;
      const Weights w = weights(type, outputs, cols);
      for (const int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 19}) {
        const std::vector<float> x = inputs(rows, cols);
        const int64_t wide = w.panels.panels() * kPanelOutputs;
        for_each_simd_target([&] {
          std::vector<float> y(static_cast<size_t>(rows * wide), NAN);
          few_rows(w.panels, 0, w.panels.panels(), {x.data(), rows, cols, cols},
                   {y.data(), rows, wide, wide});
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t o = 0; o < outputs; ++o) {
              double want = 0, size = 0;
              for (int64_t c = 0; c < cols; ++c) {
                const double term = w.meant[static_cast<size_t>(o * cols + c)] *
                                    double(x[static_cast<size_t>(i * cols + c)]);
                want += term, size += std::abs(term);
              }
              EXPECT_NEAR(y[static_cast<size_t>(i * wide + o)], want,
                          1e-6 * size + 1e-9)
                  << "row " << i << " of " << rows << ", output " << o;
            }
        });
      }
    }
}

TEST(FewRows, HaveTheSameBitsAloneAndBesideOthers) {
  for (const WeightType type : kTypes) {
    const Weights w = weights(type, 130, 200);
    const int64_t rows = 13, wide = w.panels.panels() * kPanelOutputs;
    const std::vector<float> x = inputs(rows, 200);
    for_each_simd_target([&] {
      std::vector<float> together(static_cast<size_t>(rows * wide)), alone = together;
      few_rows(w.panels, 0, w.panels.panels(), {x.data(), rows, 200, 200},
               {together.data(), rows, wide, wide});
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t p = 0; p < w.panels.panels(); ++p)
          few_rows(w.panels, p, p + 1, {x.data() + i * 200, 1, 200, 200},
                   {alone.data() + i * wide, 1, wide, wide});
      EXPECT_EQ(
          std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)), 0);
    });
  }
}

TEST(FewRows, AddToABiasAndToWhatIsThere) {
  const Weights w = weights(WeightType::f32, 40, 70);
  const int64_t wide = w.panels.panels() * kPanelOutputs;
  std::vector<float> bias(static_cast<size_t>(wide));
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  for (const int64_t rows : {1, 3, 9}) {
    const std::vector<float> x = inputs(rows, 70);
    for_each_simd_target([&] {
      std::vector<float> plain(static_cast<size_t>(rows * wide)), biased = plain;
      std::vector<float> added(plain.size(), 5.0f);
      const auto run = [&](std::vector<float>& y, const FewRowsStart& start) {
        few_rows(w.panels, 0, w.panels.panels(), {x.data(), rows, 70, 70},
                 {y.data(), rows, wide, wide}, start);
      };
      run(plain, {}), run(biased, {bias.data()}), run(added, {bias.data(), true});
      for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_NEAR(biased[i], plain[i] + bias[i % size_t(wide)], 1e-5);
        EXPECT_NEAR(added[i], 5 + plain[i] + bias[i % size_t(wide)], 1e-5);
      }
    });
  }
}

TEST(FewRows, WriteThePanelsTheyAreAskedForAlone) {
  const Weights w = weights(WeightType::f32, 64, 8);
  const std::vector<float> x = inputs(3, 8);
  for_each_simd_target([&] {
    std::vector<float> y(size_t{3} * 64, 7.0f);
    few_rows(w.panels, 1, 2, {x.data(), 3, 8, 8}, {y.data(), 3, 64, 64});
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i] == 7.0f, i % 64 < 16 || i % 64 >= 32) << i;
  });
}

TEST(FewRows, GiveARowBack) {
  for (const WeightType type : kTypes) {
    const Weights w = weights(type, 40, 65);
    std::vector<float> row(65);
    for (const int64_t o : {0, 15, 16, 39}) {
      unpack_row(w.panels, o, row.data());
      for (int64_t c = 0; c < 65; ++c)
        EXPECT_NEAR(row[static_cast<size_t>(c)],
                    w.meant[static_cast<size_t>(o * 65 + c)], 1e-7);
    }
  }
}

}  // namespace
}  // namespace lagwise::kernels
