#include <cstdlib>

#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/token_scheme.h"

/// Any ids decode to music that a MIDI file can hold, and that encodes to legal tokens.
/// The first byte chooses the scheme; each pair of bytes is an id.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  static const std::unique_ptr<TokenScheme> schemes[] = {
      make_token_scheme("remi"), make_token_scheme("groove"),
      make_token_scheme("groove:velocities=8")};
  if (size == 0) return 0;
  const TokenScheme& scheme = *schemes[data[0] % std::size(schemes)];
  std::vector<int32_t> ids;
  for (size_t i = 1; i + 1 < size; i += 2)
    ids.push_back(static_cast<int16_t>(data[i] | data[i + 1] << 8));
  const Music music = scheme.decode(ids);
  const std::string file = smf_bytes(music);
  if (parse_smf("decoded", bytes_of(file)) != music) std::abort();
  const auto grammar = scheme.grammar();
  for (const int32_t id : scheme.encode(music).ids) {
    if (!grammar->legal(id)) std::abort();
    grammar->advance(id);
  }
  return 0;
}
