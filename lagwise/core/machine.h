#pragma once

#include <cstdint>
#include <string>

namespace lagwise {

/// The cores of this machine that the process may run on; at least 1.
int usable_cores();

/// Tells malloc to keep what is freed: otherwise every large tensor is returned to the
/// kernel and each of its pages faulted in again, 2.4 us a page on a virtual machine. And
/// asks for large pages in the first GB.
/// Call it once, before the first large tensor.
void keep_freed_memory();

/// "1.5 MB"
std::string human_bytes(int64_t bytes);

}  // namespace lagwise
