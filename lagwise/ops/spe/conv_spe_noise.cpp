#include "lagwise/ops/spe/conv_spe_noise.h"

#include <ATen/Dispatch.h>

#include "lagwise/kernels/noise_panel.h"
#include "lagwise/ops/parallel/little_work.h"

namespace lagwise::ops {
namespace {

constexpr int64_t kWidth = 64;  // a multiple of the lanes of every SIMD target
constexpr int64_t kDraw = 16;   // multiply-adds that take as long as a number drawn

/// Fills to(i, r) with the draws of `row` at positions first + i, r realisations on.
template <class T>
void fill(const MatView<T>& to, const NoiseRow& row, kernels::NoiseKind kind,
          int64_t first, T* scratch) {
  for (int64_t r = 0; r < to.cols; r += kWidth) {
    const int64_t lanes = std::min(kWidth, to.cols - r);
    kernels::noise_panel<T>(row.later(0, r), kind, first, to.rows, kWidth, scratch);
    for (int64_t i = 0; i < to.rows; ++i)
      for (int64_t l = 0; l < lanes; ++l) to(i, r + l) = scratch[i * kWidth + l];
  }
}

kernels::NoiseKind kind_of(const std::string& noise) {
  TORCH_CHECK(noise == "gaussian" || noise == "sign",
              "conv_spe: expected noise gaussian or sign, got ", noise);
  return noise == "sign" ? kernels::NoiseKind::sign : kernels::NoiseKind::normal;
}

}  // namespace

void draw_conv_noise(const at::Tensor& z, int64_t first, const std::string& noise,
                     const Draw& draw) {
  const auto kind = kind_of(noise);
  const Noise source = draw.noise(streams::kConvSpe);
  const int64_t features = z.size(1);
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "draw_conv_noise", [&] {
    for_each_task_of<scalar_t>(
        kDraw * z.numel(), z.size(0) * features, z.size(2) * kWidth,
        [&](int64_t i, scalar_t* own) {
          const NoiseRow row =
              source.at({.head = i / features, .feature = i % features});
          fill<scalar_t>(head_view<scalar_t>(z, i), row, kind, first, own);
        });
  });
}

// The feature takes the place of a position: four of them come from one block.
void draw_gate_noise(const at::Tensor& z, int64_t layer, const std::string& noise,
                     const Draw& draw) {
  const auto kind = kind_of(noise);
  const Noise source = draw.noise(streams::kGate);
  const at::Tensor heads = z.unsqueeze(0);
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "draw_gate_noise", [&] {
    for_each_task_of<scalar_t>(
        kDraw * z.numel(), z.size(0), z.size(1) * kWidth,
        [&](int64_t head, scalar_t* own) {
          const NoiseRow row = source.at({.layer = layer, .head = head});
          fill<scalar_t>(head_view<scalar_t>(heads, head), row, kind, 0, own);
        });
  });
}

}  // namespace lagwise::ops
