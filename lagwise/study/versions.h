#pragma once

#include <string>

namespace lagwise {

std::string lagwise_version();   ///< "0.1.0"
std::string compiler_version();  ///< "g++ 12.2.0"
std::string torch_version();     ///< of the headers we were compiled against
std::string highway_version();

/// "lagwise 0.1.0 (torch 1.13.0, Highway 1.0.3)"
std::string version_line();

}  // namespace lagwise
