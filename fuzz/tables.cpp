#include <cstdlib>

#include "lagwise/data/formats/cifar10.h"
#include "lagwise/data/formats/delimited.h"
#include "lagwise/data/formats/idx.h"
#include "lagwise/data/formats/jsb.h"
#include "lagwise/data/sets/text_corpus.h"

namespace {

using namespace lagwise::data;

void read_rows(Bytes bytes, Delimiting how) {
  DelimitedReader reader("input", bytes, how);
  size_t columns = 0;
  for (std::vector<std::string> row; reader.next(row);) {
    if (columns != 0 && row.size() != columns) std::abort();
    columns = row.size();
  }
}

void read_idx_items(Bytes bytes) {
  const IdxArray array = parse_idx("input", bytes);
  size_t total = 0;
  for (int64_t i = 0; i < array.size(); ++i) total += array.item(i).size();
  if (total != array.bytes.size()) std::abort();
}

void split_articles(Bytes bytes) {
  size_t total = 0;
  const auto articles = wikitext_articles(bytes);
  for (const Bytes article : articles) total += article.size();
  if (!articles.empty() && total != bytes.size()) std::abort();
}

}  // namespace

/// Any bytes are a table or a DataError; the first byte chooses the reader.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes bytes(data + 1, size - 1);
  try {
    if (data[0] == '0') read_idx_items(bytes);
    if (data[0] == '1') read_rows(bytes, {'\t', false});
    if (data[0] == '2') read_rows(bytes, {',', true});
    if (data[0] == '3') parse_jsb("input", bytes);
    if (data[0] == '4') split_articles(bytes);
    if (data[0] == '5') Cifar10("input", bytes);
  } catch (const lagwise::DataError&) {
  }
  return 0;
}
