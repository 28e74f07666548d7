#include <cstdlib>
#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/toml_entries.h"

/// Any bytes are entries or a DataError of one line; text that was read is written so
/// that it reads the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  try {
    for (const TomlEntry& entry : read_toml("input", {data, size})) {
      const auto* text = std::get_if<std::string>(&entry.value);
      if (!text) continue;
      const std::string written = "a = " + toml_text(*text);
      const auto again = read_toml("written", bytes_of(written));
      if (again.size() != 1 || std::get<std::string>(again[0].value) != *text)
        std::abort();
    }
  } catch (const lagwise::DataError& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
