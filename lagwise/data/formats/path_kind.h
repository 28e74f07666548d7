#pragma once

#include <string>

namespace lagwise::data {

// What lies at a path, for readers. Where the system will not say, as of a folder that may
// not be entered, a DataError names the path and expects a readable file.

/// Whether there is anything. A link that leads nowhere counts: who opens it is told.
bool is_there(const std::string& path);

/// Whether it is a folder, or a link to one.
bool is_folder(const std::string& path);

}  // namespace lagwise::data
