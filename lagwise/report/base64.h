#pragma once

#include <string>
#include <string_view>

namespace lagwise::report {

/// Bytes as text, as pages carry them (RFC 4648, section 4).
std::string base64(std::string_view bytes);

}  // namespace lagwise::report
