#include "lagwise/encodings/conv_spe_kernels.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <charconv>
#include <cmath>
#include <stdexcept>

namespace lagwise {
namespace {

at::Tensor first_kernel(const HeadShape& shape, const std::vector<int64_t>& taps,
                        int64_t layer, int64_t side) {
  std::vector<int64_t> sizes = {shape.heads * shape.dim, 1};
  sizes.insert(sizes.end(), taps.begin(), taps.end());
  const at::Tensor kernel = at::empty(sizes, at::kFloat);
  int64_t count = 1;
  for (int64_t t : taps) count *= t;
  const Noise noise(shape.seed, streams::kParameters);
  for (int64_t i = 0; i < sizes[0]; ++i)
    noise
        .at({.layer = layer,
             .head = i / shape.dim,
             .feature = i % shape.dim,
             .realisation = side})
        .fill_uniform<float>(
            0, {kernel.data_ptr<float>() + i * count, static_cast<size_t>(count)});
  return kernel.div_(std::sqrt(static_cast<double>(count) / 2));
}

}  // namespace

std::vector<int64_t> conv_spe_taps(const std::string& text) {
  std::vector<int64_t> taps;
  const char *at = text.data(), *const end = at + text.size();
  while (true) {
    int64_t count = 0;
    const auto [stop, error] = std::from_chars(at, end, count);
    const bool more = stop != end && *stop == 'x';
    if (error != std::errc() || count < 1 || count > 1 << 20 ||
        (stop != end && !more) || taps.size() == 3)
      throw std::invalid_argument(
          "conv_spe: expected kernel as 1 to 3 numbers of taps, such as 128 or 7x7, "
          "got '" +
          text + "'");
    taps.push_back(count);
    if (!more) return taps;
    at = stop + 1;
  }
}

Parameters conv_spe_kernels(const HeadShape& shape, const std::vector<int64_t>& taps,
                            int64_t layer) {
  return {{"query_kernel", first_kernel(shape, taps, layer, 0)},
          {"key_kernel", first_kernel(shape, taps, layer, 1)}};
}

}  // namespace lagwise
