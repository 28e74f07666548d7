#include "lagwise/core/spec.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using lagwise::Spec;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Whatever `act` refuses, it says so, and in one line if `text` is one: messages quote
/// the text as it is, line breaks too.
template <class Act>
bool accepts(std::string_view text, const Act& act) {
  try {
    act();
    return true;
  } catch (const std::invalid_argument& error) {
    const bool one_line = text.find('\n') == text.npos;
    require(error.what()[0] != '\0');
    require(!one_line || !std::strchr(error.what(), '\n'));
    return false;
  }
}

}  // namespace

/// Any bytes are a Spec or a std::invalid_argument, and so are its options. The text
/// of a Spec is a Spec of the same text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!accepts(text, [&] { Spec{text}; })) return 0;

  Spec spec(text);
  const std::string canonical = spec.text();
  require(Spec(canonical).text() == canonical);

  accepts(text, [&] { spec.take("whole", 1); });
  accepts(text, [&] { spec.take("real", 1.0); });
  accepts(text, [&] { spec.take("flag", true); });
  accepts(text, [&] { spec.take_choice("choice", "left", {"left", "right"}); });
  accepts(text, [&] { spec.finish(); });
  return 0;
}
