#include "lagwise/data/text/tokenizer.h"

#include <cstdlib>

#include "lagwise/core/errors.h"

/// Any bytes are a tokenizer.json or a DataError; one that is read is written and read
/// again the same, and gives back as text what byte pairs encoded.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = parse_tokenizer("input", {data, size});
  } catch (const lagwise::DataError&) {
    return 0;
  }
  const std::string json = tokenizer->json();
  if (parse_tokenizer("again", bytes_of(json))->json() != json) std::abort();
  const std::string_view text = text_of({data, size < 4096 ? size : 4096});
  std::string decoded;
  for (const int32_t id : tokenizer->encode(text)) {
    if (id < 0 || id >= tokenizer->vocabulary()) std::abort();
    decoded += tokenizer->decode(id);
  }
  if (tokenizer->kind() == "bpe" && decoded != text) std::abort();
  return 0;
}
