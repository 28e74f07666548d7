#include "tests/golden_runner/spe_arrays.h"

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace lagwise::golden {
namespace {

// The parameters of the one layer, with the stored gate where there is one.
Layer layer_of(Run& run, Encoding& encoding, bool gated) {
  Layer layer{0, 1, encoding.layer(0, 1)};
  if (!gated) return layer;
  const at::Tensor gate = parameter(layer.own, "gate");
  run.fill("gate_raw", gate);
  run.adopt("gate", gate);  // its gradients are stored under this name
  return layer;
}

// sqrt(R) times the rows begin, begin + 1, .. of the identity: [rows, R].
at::Tensor orthogonal_rows(int64_t begin, int64_t rows, int64_t r,
                           at::ScalarType dtype) {
  return at::eye(r, dtype).slice(0, begin, begin + rows) *
         std::sqrt(static_cast<double>(r));
}

std::string joined(const std::vector<int64_t>& lengths) {
  std::string text;
  for (const int64_t length : lengths)
    text += (text.empty() ? "" : "x") + std::to_string(length);
  return text;
}

}  // namespace

int64_t cells(const std::vector<int64_t>& size) {
  return std::accumulate(size.begin(), size.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> grid_of(const at::Tensor& x) {
  const std::vector<int64_t> shape = x.sizes().vec();
  return {shape.begin() + 1, shape.end() - 2};
}

at::Tensor to_heads(const at::Tensor& x) {
  const int64_t heads = x.size(-2), d = x.size(-1);
  return x.reshape({x.size(0), -1, heads, d}).transpose(1, 2);
}

at::Tensor from_heads(const at::Tensor& x, const std::vector<int64_t>& stored) {
  return x.transpose(1, 2).reshape(stored);
}

Encoded Spe::encode(const at::Tensor& q, const at::Tensor& k,
                    const std::vector<int64_t>& size) {
  Placement at;
  at.causal = false;  // nothing in a code is causal
  if (size.size() > 1) at.grid = size;
  at.query_at = at.key_at = positions;
  Draw draw;
  at::Tensor noise = code_noise;
  for (size_t axis = 0; axis < kernel.size(); ++axis)  // [.., 4 kernel + size]
    noise =
        noise.slice(static_cast<int64_t>(axis) + 2, 0, 4 * kernel[axis] + size[axis]);
  draw.given[noise_name + ".z"] = noise;
  if (gate_noise.defined()) draw.given[noise_name + ".gate"] = gate_noise;
  return encode_once(*encoding, q, k, at, draw, &layer);
}

Spe make_sine_spe(Run& run, bool gated, bool orthogonal) {
  const GoldenCase& golden = run.golden;
  const std::vector<int64_t> shape = golden["z"].shape;  // (1, H, D, 2K, R)
  const int64_t heads = shape[1], d = shape[2], sines = shape[3] / 2;
  const int64_t drawn = 2 * sines * d, r = orthogonal ? drawn + d : shape[4];
  Spe spe;
  spe.encoding = encoding("sine_spe:sines=" + std::to_string(sines) +
                              ",realizations=" + std::to_string(r) +
                              ",gated=" + (gated ? "true" : "false"),
                          {.heads = heads, .dim = d});
  spe.noise_name = "sine_spe";
  const Parameters shared = spe.encoding->shared();
  run.fill("freqs", parameter(shared, "frequencies"));
  run.fill("offsets", parameter(shared, "offsets"));
  run.fill("gains", parameter(shared, "gains"));
  spe.layer = layer_of(run, *spe.encoding, gated);
  if (golden.has("positions")) spe.positions = run.given("positions");
  if (orthogonal) {
    spe.code_noise = orthogonal_rows(0, drawn, r, run.dtype)
                         .view({1, 1, d, 2 * sines, r})
                         .expand({1, heads, d, 2 * sines, r});
    if (gated)
      spe.gate_noise = orthogonal_rows(drawn, d, r, run.dtype).expand({heads, d, r});
  } else {
    spe.code_noise = run.given("z");
    if (gated) spe.gate_noise = run.given("gate_noise");
  }
  return spe;
}

Spe make_conv_spe(Run& run, bool gated, bool orthogonal) {
  const GoldenCase& golden = run.golden;
  const std::vector<int64_t> stored =
      golden["z"].shape;  // (R, H D, 4 kernel + size ..)
  const std::vector<int64_t> extent(stored.begin() + 2, stored.end());
  const int64_t heads = golden.param<int64_t>("H"), d = golden.param<int64_t>("D");
  const int64_t drawn = d * cells(extent), r = orthogonal ? drawn + d : stored[0];
  Spe spe;
  spe.kernel = golden.param<std::vector<int64_t>>("kernel");
  spe.encoding = encoding("conv_spe:kernel=" + joined(spe.kernel) +
                              ",realizations=" + std::to_string(r) +
                              ",gated=" + (gated ? "true" : "false"),
                          {.heads = heads, .dim = d});
  spe.noise_name = "conv_spe";
  const Parameters shared = spe.encoding->shared();
  // In the reference conv_q makes the code of the keys, and conv_k of the queries.
  run.fill("conv_q_weight", parameter(shared, "key_kernel"));
  run.fill("conv_k_weight", parameter(shared, "query_kernel"));
  spe.layer = layer_of(run, *spe.encoding, gated);
  if (orthogonal) {
    std::vector<int64_t> shape = stored;
    shape[0] = r;
    spe.code_noise = orthogonal_rows(0, drawn, r, run.dtype)  // [D cells, R]
                         .t()
                         .view({r, 1, -1})
                         .expand({r, heads, drawn})
                         .reshape(shape);
    if (gated)
      spe.gate_noise = orthogonal_rows(drawn, d, r, run.dtype).expand({heads, d, r});
  } else {
    spe.code_noise = run.given("z");
    if (gated) spe.gate_noise = run.given("gate_noise");
  }
  return spe;
}

}  // namespace lagwise::golden
