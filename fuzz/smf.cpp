#include "lagwise/data/formats/smf.h"

#include <cstdlib>

#include "lagwise/core/errors.h"

/// Any bytes are music or a DataError, and music that was written reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  Music music;
  try {
    music = parse_smf("input", {data, size});
  } catch (const lagwise::DataError&) {
    return 0;
  }
  const std::string written = smf_bytes(music);
  if (parse_smf("written", bytes_of(written)) != music) std::abort();
  return 0;
}
