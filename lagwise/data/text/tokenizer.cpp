#include "lagwise/data/text/tokenizer.h"

#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  while (!text.empty()) encode_front(text, text.size(), ids);
  return ids;
}

uint64_t Tokenizer::hash() const { return fnv1a(bytes_of(json())); }

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& file) {
  return parse_tokenizer(file, MappedFile(file).bytes());
}

}  // namespace lagwise::data
