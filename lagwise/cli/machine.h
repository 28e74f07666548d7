#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise::cli {

// What the machine says about itself. Text is empty and numbers are 0 where it
// does not say.

struct Memory {
  int64_t bytes = 0;
  int64_t available_bytes = 0;
};

std::string cpu_model();
std::string cpu_vendor();                 ///< "GenuineIntel"
bool cpu_has(std::string_view feature);   ///< as Linux spells it: "avx2"
std::vector<std::string> cpu_features();  ///< those that matter to arithmetic
Memory memory();

/// The SIMD targets of Highway, best first.
std::vector<std::string> compiled_simd();
std::vector<std::string> usable_simd();  ///< of the compiled ones, on this CPU

/// The files of the shared libraries in this process whose names begin with `name`,
/// links resolved, in the order in which they were loaded.
std::vector<std::string> loaded_libraries(std::string_view name);
std::string loaded_library(std::string_view name);  ///< the first, or nothing

/// The value of an environment variable, or "not set".
std::string environment(const char* name);

}  // namespace lagwise::cli
