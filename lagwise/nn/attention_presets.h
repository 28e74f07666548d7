#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lagwise::nn {

/// The attention of a known model by its name: nothing but the text it stands for.
struct AttentionPreset {
  std::string_view name;
  std::string_view text;   ///< the options in full: "linear:map=none,write=delta,..."
  std::string_view paper;  ///< "arXiv:2412.06464"
  std::string_view note;   ///< what is the same, and what is not
};

/// Every preset, in the order in which they are told.
const std::vector<AttentionPreset>& attention_presets();

/// The text that a preset stands for, with the options given beside its name over its
/// own: "deltanet:conv=2". Any other text comes back as it is.
std::string expand_preset(std::string_view text);

/// The same for each text of a list by layer (core/layer_texts.h), as runs keep it, so
/// that they go on meaning the same when a preset changes. What cannot be read comes
/// back as it is.
std::string expand_presets(const std::string& text);

}  // namespace lagwise::nn
