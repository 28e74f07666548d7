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

/// Whatever `act` refuses, it says so in one line.
template <class Act>
bool accepts(const Act& act) {
  try {
    act();
    return true;
  } catch (const std::invalid_argument& error) {
    require(error.what()[0] != '\0');
    require(!std::strchr(error.what(), '\n'));
    return false;
  }
}

}  // namespace

/// Any bytes are a Spec or a std::invalid_argument, and so are its options. The text
/// of a Spec is a Spec of the same text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!accepts([&] { Spec{text}; })) return 0;

  Spec spec(text);
  const std::string canonical = spec.text();
  require(Spec(canonical).text() == canonical);

  accepts([&] { spec.take("whole", 1); });
  accepts([&] { spec.take("real", 1.0); });
  accepts([&] { spec.take("flag", true); });
  accepts([&] { spec.take_choice("choice", "left", {"left", "right"}); });
  accepts([&] { spec.finish(); });
  return 0;
}
