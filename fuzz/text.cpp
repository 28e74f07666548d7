#include <cstdlib>

#include "lagwise/data/text/byte_pair_training.h"
#include "lagwise/data/text/word_level.h"

/// What is learned from any bytes encodes them: byte pairs decode to the same bytes,
/// whatever is taken at once, and words to words of the vocabulary. The first byte says
/// how much is taken.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  if (size == 0) return 0;
  const std::string_view text = text_of({data + 1, size - 1});
  BytePairTraining training;
  training.read(text);
  const BytePairs pairs = training.learn(300);
  std::string decoded;
  for (const int32_t id : pairs.encode(text)) decoded += pairs.decode(id);
  if (decoded != text) std::abort();
  std::vector<int32_t> ids;
  for (std::string_view rest = text; !rest.empty();)
    pairs.encode_front(rest, size_t{1} + data[0], ids);
  if (ids != pairs.encode(text)) std::abort();
  WordCount count;
  count.read(text);
  const WordLevel words = count.words(0);
  for (const int32_t id : words.encode(text))
    if (id < 0 || id >= words.vocabulary()) std::abort();
  return 0;
}
