// Encodings that are added to the input.

#include <ATen/ATen.h>

#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

void sinusoidal(Run& run) {
  const int64_t width = run.golden.param<int64_t>("d");
  const int64_t rows = run.golden.param<int64_t>("length");
  const std::pair<const char*, std::string> layouts[] = {
      {"interleaved_vaswani", "interleaved"},
      {"half_split", "half"},
      {"half_split_tensor2tensor_fairseq", "tensor2tensor"},
  };
  const at::Tensor nothing = at::zeros({1, rows, width}, run.dtype);
  for (const auto& [name, layout] : layouts) {
    if (!run.golden.has(name)) continue;
    const auto one = encoding("sinusoidal:layout=" + layout,
                              {.heads = 1, .dim = width, .model_dim = width});
    run.compare(name, one->embed(nothing, {}));
  }
}

const RegisterHandler absolute_row({"sinusoidal", "absolute", sinusoidal});

}  // namespace
}  // namespace lagwise::golden
