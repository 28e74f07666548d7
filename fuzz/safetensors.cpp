#include "lagwise/data/formats/safetensors.h"

#include <cstdlib>
#include <string>

#include "lagwise/core/errors.h"

/// Any bytes are a file or a DataError, and every tensor of a file lies inside it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const lagwise::data::Safetensors file("input", {data, size});
    unsigned sum = 0;
    for (const auto& tensor : file.tensors()) {
      for (const uint8_t byte : tensor.bytes) sum += byte;  // ASan looks at each
      if (file.find(tensor.name) != &tensor) std::abort();
    }
    if (sum > 255 * size) std::abort();
  } catch (const lagwise::DataError& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
