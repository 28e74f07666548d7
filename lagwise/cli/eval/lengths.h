#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise::cli {

/// "1x,2x,800" as numbers of tokens, rising, without repetition: multiples of the
/// training length, or tokens. "none" gives none. std::invalid_argument says what is
/// legal.
std::vector<int64_t> lengths_asked(const std::string& text, int64_t trained);

}  // namespace lagwise::cli
