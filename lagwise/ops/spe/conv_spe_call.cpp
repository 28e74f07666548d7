#include "lagwise/ops/spe/conv_spe_call.h"

#include <c10/util/Exception.h>

#include <cmath>

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::ConvWindow;

constexpr const char* kOp = "conv_spe";

void check_rows(const char* name, const Tensor& x, const Tensor& like) {
  TORCH_CHECK(x.dim() == 4, kOp, ": expected ", name, " [B, H, N, D], got ", x.sizes());
  TORCH_CHECK(x.size(0) == like.size(0) && x.size(1) == like.size(1) &&
                  x.size(3) == like.size(3),
              kOp, ": expected k [B, H, M, D] with B, H and D of q ", like.sizes(),
              ", got ", x.sizes());
  TORCH_CHECK(x.scalar_type() == like.scalar_type() && x.device() == like.device(), kOp,
              ": expected ", name, " of type ", like.scalar_type(), " on ",
              like.device(), ", got ", x.scalar_type(), " on ", x.device());
}

void check_kernel(const char* name, const Tensor& kernel, const Tensor& q,
                  const Tensor& like) {
  TORCH_CHECK(kernel.dim() >= 3 && kernel.dim() <= 5 &&
                  kernel.size(0) == q.size(1) * q.size(3) && kernel.size(1) == 1 &&
                  (kernel.numel() > 0 || kernel.size(0) == 0),
              kOp, ": expected ", name,
              " [H D, 1, kernel..] with H D = ", q.size(1) * q.size(3),
              " and 1 to 3 axes of taps, got ", kernel.sizes());
  TORCH_CHECK(kernel.sizes() == like.sizes(), kOp,
              ": expected both kernels of one size, got ", like.sizes(), " and ",
              kernel.sizes());
  TORCH_CHECK(kernel.scalar_type() == q.scalar_type() && kernel.device() == q.device(),
              kOp, ": expected ", name, " of type ", q.scalar_type(), " on ",
              q.device(), ", got ", kernel.scalar_type(), " on ", kernel.device());
}

/// The cells of `rows` rows from `start` on a line, or of the whole grid.
ConvWindow window_of(const ConvSpeOptions& options, const Tensor& kernel, int64_t start,
                     int64_t rows) {
  const auto axes = static_cast<size_t>(kernel.dim() - 2);
  ConvWindow window;
  for (size_t i = 0; i < axes; ++i)
    window.kernel[3 - axes + i] = kernel.size(static_cast<int64_t>(i) + 2);
  if (options.grid.empty()) {
    TORCH_CHECK(axes == 1, kOp, ": expected a grid of ", axes,
                " axes, as the kernels have, got a line");
    window.origin[2] = start;
    window.extent[2] = rows;
    return window;
  }
  TORCH_CHECK(options.grid.size() == axes, kOp, ": expected a grid of ", axes,
              " axes, as the kernels have, got ", options.grid);
  TORCH_CHECK(start == 0, kOp,
              ": expected the whole grid from its first cell, got rows "
              "from ",
              start);
  for (size_t i = 0; i < axes; ++i) window.extent[3 - axes + i] = options.grid[i];
  TORCH_CHECK(window.cells() == rows, kOp,
              ": expected a row for each cell of the grid ", options.grid, ", got ",
              rows, " rows");
  return window;
}

/// Coordinates share the 47 bits of a position of noise: 47, 23 or 15 for each axis.
void check_range(const ConvSpeCall& call, size_t axes) {
  const int64_t bits = axes == 1 ? 47 : axes == 2 ? 23 : 15, end = int64_t{1} << bits;
  for (const ConvWindow& w : call.window)
    for (size_t i = 0; i < 3; ++i) {
      const int64_t first = w.origin[i], last = first + w.samples(static_cast<int>(i));
      TORCH_CHECK(first >= -end && first < end && last <= end, kOp,
                  ": expected positions and kernel within 2^", bits, " on each of ",
                  axes, " axes, got [", first, ", ", last, ")");
    }
  TORCH_CHECK(call.h < 1 << 16 && call.d < 1 << 24, kOp,
              ": expected fewer than 2^16 heads and 2^24 features, got ", call.h,
              " and ", call.d);
}

void check_given(const ConvSpeCall& call, size_t axes) {
  const Tensor& z = call.z;
  TORCH_CHECK(z.dim() == static_cast<int64_t>(axes) + 3 && z.size(0) == call.h &&
                  z.size(1) == call.d && z.size(-1) == call.r,
              kOp, ": expected z [H, D, samples.., R] = [", call.h, ", ", call.d,
              ", .., ", call.r, "], got ", z.sizes());
  TORCH_CHECK(z.scalar_type() == call.q.scalar_type() && !z.requires_grad(), kOp,
              ": expected z of type ", call.q.scalar_type(),
              " that needs no gradient, got ", z.scalar_type());
  for (const ConvWindow& w : call.window) {
    if (w.cells() == 0) continue;
    for (size_t i = 3 - axes; i < 3; ++i) {
      const int64_t first = call.z_origin[i],
                    last = first + z.size(static_cast<int64_t>(i + axes) - 1);
      const int64_t from = w.origin[i], to = from + w.samples(static_cast<int>(i));
      TORCH_CHECK(first <= from && to <= last, kOp,
                  ": expected z to hold the samples [", from, ", ", to,
                  ") of each axis, got [", first, ", ", last, ")");
    }
  }
}

}  // namespace

ConvSpeCall check_conv_spe(const Tensor& q, const Tensor& k, const Tensor& query_kernel,
                           const Tensor& key_kernel, const ConvSpeOptions& options) {
  check_rows("q", q, q);
  check_rows("k", k, q);
  TORCH_CHECK(q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble, kOp,
              ": expected float or double, got ", q.scalar_type());
  check_kernel("query_kernel", query_kernel, q, query_kernel);
  check_kernel("key_kernel", key_kernel, q, query_kernel);
  TORCH_CHECK(options.realizations >= 1 && options.realizations < 1 << 23, kOp,
              ": expected realizations in [1, 2^23), got ", options.realizations);
  TORCH_CHECK(options.noise == "gaussian" || options.noise == "sign", kOp,
              ": expected noise gaussian or sign, got ", options.noise);
  const auto axes = static_cast<size_t>(query_kernel.dim() - 2);
  TORCH_CHECK(options.method == "auto" || options.method == "direct" ||
                  (options.method == "fourier" && axes == 1),
              kOp, ": expected method auto, direct or, on a line, fourier, got ",
              options.method);
  ConvSpeCall call{q, k, query_kernel, key_kernel, options.z};
  call.b = q.size(0), call.h = q.size(1), call.d = q.size(3);
  call.r = options.realizations;
  call.window = {window_of(options, query_kernel, options.query_start, q.size(2)),
                 window_of(options, query_kernel, options.key_start, k.size(2))};
  check_range(call, axes);
  if (axes == 2) call.pitch[1] = int64_t{1} << 23;
  if (axes == 3) call.pitch = {int64_t{1} << 30, int64_t{1} << 15, 1};
  call.z_origin[2] = options.z_start;
  if (call.z.defined()) check_given(call, axes);
  if (options.noise == "sign") call.kind = kernels::NoiseKind::sign;
  call.draw = options.draw;
  call.chosen = options.method != "auto";
  if (options.method == "fourier") call.method = kernels::ConvMethod::fourier;
  const double rd = static_cast<double>(call.r) * static_cast<double>(call.d);
  call.scale = rd > 0 ? 1 / std::sqrt(std::sqrt(rd)) : 1;
  return call;
}

}  // namespace lagwise::ops
