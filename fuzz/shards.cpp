#include "lagwise/data/sets/shards.h"

#include <cstdlib>
#include <vector>

#include "lagwise/core/errors.h"

/// Any bytes are a shard (or, from a brace on, a manifest) or a DataError, and all
/// tokens of a shard can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  const Bytes bytes(data, size);
  try {
    if (size > 0 && data[0] == '{') return check_shard_manifest("input", bytes), 0;
    const Shard shard("input", bytes, 1000);
    int64_t total = 0;
    for (int64_t i = 0; i < shard.sequences(); ++i) total += shard.length(i);
    if (total != shard.tokens()) std::abort();
    std::vector<int64_t> tokens(static_cast<size_t>(total));
    shard.read(0, tokens);
  } catch (const lagwise::DataError&) {
  }
  return 0;
}
