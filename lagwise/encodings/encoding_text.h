#pragma once

#include <string>

namespace lagwise {

/// An encoding with every option stated, keys sorted: "alibi:exponent=8"; of a list by
/// layer (core/layer_texts.h) each one. Runs keep this form, so that they go on meaning
/// the same when a default changes. A text from which no encoding can be made comes
/// back as it is.
std::string full_encoding(const std::string& text);

/// The other way, from what a run kept to what people read: options at today's default
/// left out. Versions that did not state every option kept the text as it was written;
/// what such a text leaves out stands at the default of its time (EncodingRow::older).
std::string stored_encoding(const std::string& text);

}  // namespace lagwise
