#include "bench/plain_model.h"

#include <stdexcept>
#include <string_view>

#include "bench/materialised_encoding.h"
#include "bench/plain_mixer.h"
#include "lagwise/nn/mixer.h"

namespace lagwise::bench {
namespace {

/// "linear:map=elu1" with another name before its options.
std::string renamed(const std::string& text, std::string_view from,
                    const std::string& to) {
  if (Spec(text).name() != from)
    throw std::invalid_argument("plain_model: expected " + std::string(from) +
                                ", got '" + text + "'");
  return to + text.substr(from.size());
}

}  // namespace

ModelConfig plain_model(ModelConfig config) {
  register_materialised_encoding();
  register_plain_mixer();
  config.encoding = renamed(config.encoding, "sine_spe", "materialised");
  config.attention = renamed(config.attention, "linear", "plain");
  return config;
}

int64_t plain_step_bytes(const ModelConfig& config, int64_t batch, int64_t n) {
  const auto encoding = make_encoding(
      config.encoding, {.heads = config.heads, .dim = config.dim / config.heads});
  const int64_t code = n * config.dim * encoding->width();  // [N, H, D, R]
  const auto element = static_cast<int64_t>(sizeof(float));
  return (2 + 2 * config.layers + 2 * batch) * code * element;
}

}  // namespace lagwise::bench
