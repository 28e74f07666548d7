#include "lagwise/data/formats/npy.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lagwise/core/errors.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Any bytes are an array or a DataError of one line whose offset stands in the file.
/// An array holds as many bytes as its shape says, and no more than came.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view contents(reinterpret_cast<const char*>(data), size);
  try {
    const auto array = lagwise::data::parse_npy(contents, "fuzz.npy");
    require(array.bytes.size() < size);
    require(static_cast<int64_t>(array.bytes.size()) ==
            array.numel() * array.item_size());
  } catch (const lagwise::DataError& error) {
    require(error.offset() >= 0 && error.offset() <= static_cast<int64_t>(size));
    require(!std::strchr(error.what(), '\n'));
  }
  return 0;
}
