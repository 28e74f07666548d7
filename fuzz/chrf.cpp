#include "lagwise/data/text/chrf.h"

#include <cstdlib>

#include "lagwise/data/formats/bytes.h"

/// Any two texts, parted by the first zero byte, have a score from 0 to 100; it is that of
/// the whole where both are one text with a character in it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  const std::string_view all = text_of({data, size});
  const std::string_view written = all.substr(0, all.find('\0'));
  const std::string_view wanted =
      written.size() < all.size() ? all.substr(written.size() + 1) : "";
  const auto score = [](std::string_view one, std::string_view other) {
    ChrF chrf;
    chrf.add(one, other);
    return chrf.score();
  };
  const double between = score(written, wanted);
  if (!(between >= 0 && between <= 100 + 1e-9)) std::abort();
  const double same = score(written, written);
  if (same != 0 && !(same > 100 - 1e-9 && same < 100 + 1e-9)) std::abort();
  if (between > 0 && same == 0) std::abort();
  return 0;
}
