#include "lagwise/data/music/tokens_reach.h"

namespace lagwise::data {

int64_t tokens_reach(const TokenScheme& scheme, std::span<const int32_t> ids) {
  if (ids.empty()) return 0;
  const std::unique_ptr<MusicDecoder> decoder = scheme.decoder();
  for (const int32_t id : ids) decoder->take(id);
  decoder->finish();
  return decoder->music.end;  // before tidy() moves it behind the last note
}

}  // namespace lagwise::data
