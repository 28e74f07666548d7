#include "lagwise/nn/mixer.h"

#include <stdexcept>

#include "lagwise/core/registry.h"
#include "lagwise/nn/attention_presets.h"

namespace lagwise::nn {
namespace {

Registry<MixerRow>& registry() {
  static Registry<MixerRow> registry("attention");
  return registry;
}

void check_causal(const MixerRow& row, const MemoryOptions& memory, bool causal) {
  if (memory.needs_order() && !causal)
    throw std::invalid_argument(
        std::string(row.name) +
        ": expected causal attention with forget=gated, write=delta or conv, got full "
        "attention, where rows have no order to forget in");
}

/// The names of the encodings that an attention can serve, for an error message.
std::string served_by(const MixerRow& row, bool causal) {
  std::string list;
  for (const EncodingRow& encoding : encodings()) {
    const auto made = make_encoding(encoding.text(), {.heads = 4, .dim = 8});
    if (!row.serves(made->traits(), causal)) continue;
    list += (list.empty() ? "" : ", ") + std::string(encoding.name);
  }
  return list;
}

}  // namespace

RegisterMixer::RegisterMixer(MixerRow row) { registry().add(row); }

const std::vector<MixerRow>& mixers() { return registry().rows(); }

const MixerRow& mixer_row(std::string_view text) {
  std::vector<std::string> presets;
  for (const AttentionPreset& preset : attention_presets())
    presets.emplace_back(preset.name);
  return registry().find(Spec(expand_preset(text)).name(), presets);
}

std::shared_ptr<Encoding> make_encoding_for(std::string_view attention,
                                            const std::string& text, HeadShape shape) {
  std::shared_ptr<Encoding> made = make_encoding(text, shape);
  if (made->traits().stage != Traits::Stage::after_map) return made;
  const std::string expanded = expand_preset(attention);
  const int64_t width = mixer_row(expanded).feature_width(expanded, shape.dim);
  if (width == shape.dim) return made;
  shape.value_dim = shape.value_width(), shape.model_dim = shape.model_width();
  shape.dim = width;
  return make_encoding(text, shape);
}

OneTokenLayer Mixer::one_token(const Draw&, int64_t) const {
  throw std::invalid_argument(
      "expected linear attention, whose state has a constant size, got another kind");
}

std::unique_ptr<Mixer> make_mixer(std::string_view text, const MixerPlace& place,
                                  const std::string& encoding_text,
                                  std::shared_ptr<Encoding> encoding, Layer layer) {
  const std::string expanded = expand_preset(text);
  const MixerRow& row = mixer_row(expanded);
  if (!row.serves(encoding->traits(), place.causal))
    throw std::invalid_argument(
        "encoding '" + encoding_text + "' cannot be used with " +
        (place.causal ? "causal " : "full ") + std::string(row.name) +
        " attention; expected one of " + served_by(row, place.causal));
  auto mixer = row.make(expanded, place, std::move(encoding), std::move(layer));
  check_causal(row, mixer->memory(), place.causal);
  return mixer;
}

}  // namespace lagwise::nn
