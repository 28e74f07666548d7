#pragma once

#include <string>
#include <string_view>

namespace lagwise::cli {

/// Bytes that come one by one, as text a terminal can show: whole characters alone. A
/// character whose bytes are not all there yet is held back; what is no UTF-8, and
/// control characters other than tab and line break, become U+FFFD.
class Utf8 {
 public:
  std::string feed(std::string_view bytes);  ///< what can be shown by now
  std::string finish();                      ///< what was held back

 private:
  std::string held_;
};

std::string shown_text(std::string_view bytes);  ///< all of it at once

}  // namespace lagwise::cli
