#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lagwise {

/// The contents of a small file of the system; nothing: it is not there.
using ReadSystemFile = std::function<std::optional<std::string>(const std::string&)>;

/// The bytes of memory that this process may use: what the machine has, or less where its
/// container (cgroups, version 1 or 2) or `ulimit -v` says so.
double usable_memory();

/// The limit of the container alone, as its files say; nothing: there is none.
std::optional<double> container_memory(const ReadSystemFile& read);

/// From now on an allocation beyond the usable memory fails (std::bad_alloc), where the
/// system would grant it and later end the process. Mapped files do not count.
void keep_within_usable_memory();

}  // namespace lagwise
