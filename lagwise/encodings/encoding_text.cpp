#include "lagwise/encodings/encoding_text.h"

#include <stdexcept>

#include "lagwise/core/layer_texts.h"
#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

/// Calls write(spec, row) for the encoding of each layer.
template <class Write>
std::string rewritten(const std::string& text, const Write& write) {
  const auto rewrite = [&](const std::string& one) {
    Spec spec(one);
    for (const EncodingRow& row : encodings())
      if (row.name == spec.name()) return write(spec, row);
    return one;
  };
  try {
    return rewrite_layer_texts("model.encoding", text, rewrite);
  } catch (const std::invalid_argument&) {  // whoever makes it will say what is wrong
  }
  return text;
}

/// Any heads will do: options do not depend on them.
void take_options(Spec& spec, const EncodingRow& row) {
  row.make(spec, {.heads = 1, .dim = 8});
  spec.finish();
}

}  // namespace

std::string full_encoding(const std::string& text) {
  return rewritten(text, [](Spec& spec, const EncodingRow& row) {
    take_options(spec, row);
    return spec.full_text();
  });
}

std::string stored_encoding(const std::string& text) {
  return rewritten(text, [](Spec& spec, const EncodingRow& row) {
    if (!row.older.empty()) spec.assume(Spec(row.older));
    take_options(spec, row);
    return spec.short_text();
  });
}

}  // namespace lagwise
