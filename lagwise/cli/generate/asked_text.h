#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise::cli {

/// What a file holds that a model is asked to go on from or to answer; of "-" what comes
/// from stdin. DataError names a file that cannot be read, or is no text.
std::string asked_text(const std::string& file);

/// The lines of such a text, each to be answered by itself; DataError names one that is
/// empty or no UTF-8, and refuses none or more than `most`.
std::vector<std::string> asked_lines(const std::string& file, const std::string& text,
                                     int64_t most);

}  // namespace lagwise::cli
