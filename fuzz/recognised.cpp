#include "lagwise/data/sources/recognised.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "fuzz/memory_folder.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/sources/listops_expression.h"
#include "lagwise/data/sources/lra_tables.h"

namespace {

using namespace lagwise::data;

/// The tables of the Long Range Arena, each row whatever a task makes of it.
void read_arena(const std::string& file) {
  each_retrieval_row(file, [](std::string_view, std::string_view, int label) {
    if (label < 0 || label > 1) std::abort();
  });
}

void read_listops(const std::string& file) {
  each_listops_row(file, [](std::string_view expression, int) {
    try {
      const int value = listops_value(listops_symbols(expression));
      if (value < 0 || value > 9) std::abort();
    } catch (const std::invalid_argument&) {
    }
  });
}

}  // namespace

/// A file of any bytes is what `lagwise data` says it is, or none with a reason, or a
/// DataError of one line. The first byte chooses its name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  constexpr const char* kNames[] = {"a.csv",    "a.tsv",  "a.jsonl",   "a.txt",
                                    "a.txt.gz", "a.json", "a.parquet", "a",
                                    "a.mid",    "a.png",  "a.tar.gz"};
  if (size == 0) return 0;
  const char* const name = kNames[data[0] % std::size(kNames)];
  const std::string file = folder.put(name, text_of({data + 1, size - 1}));
  try {
    const Recognised found = recognise(file);
    if (found.kind.empty() == found.why.empty()) std::abort();
    for (const std::string& line : found.seen)
      if (line.find('\n') != line.npos) std::abort();
    if (found.kind == "retrieval") read_arena(file);
    if (file.ends_with(".tsv")) read_listops(file);
  } catch (const lagwise::DataError& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  std::filesystem::remove(file);
  return 0;
}
