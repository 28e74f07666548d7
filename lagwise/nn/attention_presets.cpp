#include "lagwise/nn/attention_presets.h"

#include <stdexcept>

#include "lagwise/core/layer_texts.h"
#include "lagwise/core/spec.h"

namespace lagwise::nn {

const std::vector<AttentionPreset>& attention_presets() {
  static const std::vector<AttentionPreset> presets = {
      {"retnet", "linear:map=none,denominator=none,norm=rms_head,gate_output=true",
       "arXiv:2307.08621",
       "decay by the encoding: rope:layout=interleaved,decay=retnet"},
      {"gla-scalar",
       "linear:map=none,denominator=none,norm=rms_head,forget=gated,gate_output=true",
       "arXiv:2312.06635", "GLA with one gate per head in place of one per channel"},
      {"mamba2-like",
       "linear:map=none,denominator=none,norm=rms_head,forget=gated,conv=4,"
       "gate_output=true",
       "arXiv:2405.21060", "no step size on the input, no SiLU after conv"},
      {"deltanet", "linear:map=none,norm=rms_head,write=delta,conv=4",
       "arXiv:2406.06484", "no SiLU after conv"},
      {"gated_deltanet",
       "linear:map=none,norm=rms_head,forget=gated,write=delta,conv=4,gate_output=true",
       "arXiv:2412.06464", "no SiLU after conv"},
      {"forgetting_transformer", "exact:forget=gated", "arXiv:2503.02130",
       "softmax whose keys fade, with a clock for each head"},
  };
  return presets;
}

std::string expand_preset(std::string_view text) {
  const std::string name = Spec(text).name();
  for (const AttentionPreset& preset : attention_presets()) {
    if (preset.name != name) continue;
    const Spec own(preset.text);
    Spec given(own.name() + std::string(text.substr(name.size())));
    given.assume(own);
    return given.text();
  }
  return std::string(text);
}

std::string expand_presets(const std::string& text) {
  try {
    return rewrite_layer_texts("model.attention", text, [](const std::string& one) {
      return expand_preset(one);
    });
  } catch (const std::invalid_argument&) {  // whoever makes it will say what is wrong
    return text;
  }
}

}  // namespace lagwise::nn
