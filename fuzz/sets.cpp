#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fuzz/memory_folder.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/data/sources/recognised.h"

namespace {

using namespace lagwise;
using namespace lagwise::data;

/// A manifest as someone would forge it: it says of the one shard what is true of its
/// bytes. A fuzzer cannot find hashes.
std::string forged(std::string_view manifest, Bytes shard) {
  nlohmann::json tree = nlohmann::json::parse(manifest, nullptr, false);
  if (!tree.is_object()) return std::string(manifest);
  try {
    const Shard opened("shard", shard, INT32_MAX);
    tree["splits"] = {{"train",
                       {{"bytes", shard.size()},
                        {"sequences", opened.sequences()},
                        {"tokens", opened.tokens()},
                        {"fnv1a", hash_text(fnv1a(shard))}}}};
  } catch (const DataError&) {  // no shard: let the set say so
  }
  return tree.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// All that a task reads of a set of examples.
void read_examples(const std::string& folder, ExampleLayout layout) {
  const std::string scheme = ShardSet(folder).manifest().scheme;
  const ExampleSet set(folder, scheme, layout);
  const auto names = set.class_names();
  if (!names.empty() && std::ssize(names) != set.number("classes")) std::abort();
  for (const std::string& name : set.splits()) {
    const ExampleSplit& split = set.split(name);
    for (int64_t i = 0; i < split.size(); ++i)
      for (int part = 0; part < (layout.paired ? 2 : 1); ++part) {
        std::vector<int64_t> tokens(static_cast<size_t>(split.length(i, part)));
        split.read(i, part, 0, tokens);
        for (const int64_t token : tokens)
          if (token < 0 || token >= set.number("vocabulary")) std::abort();
        if (layout.labelled && split.label(i) < 0) std::abort();
      }
  }
}

/// All that a language task reads of it.
void read_language(const std::string& folder) {
  const LanguageCorpus corpus(folder, 0.1, 0.1);
  for (const std::string& name : corpus.splits()) {
    const TokenStream& stream = corpus.split(name);
    std::vector<int64_t> tokens(static_cast<size_t>(stream.size()));
    stream.read(0, tokens);
    for (const int64_t token : tokens)
      if (token < 0 || token >= corpus.vocabulary()) std::abort();
    corpus.extent(name, stream.longest() / 2);
  }
}

/// What `read` does, or a DataError of one line.
template <class Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const DataError& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
}

}  // namespace

/// A folder of any manifest and any shard, which a byte 0 parts, is a prepared set or a
/// DataError of one line. With 'f' in front the manifest is forged to fit the shard.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  const std::string_view all = text_of({data, size});
  const size_t border = std::min(all.find('\0'), all.size());
  const bool is_forged = all.starts_with('f');
  const std::string_view manifest = all.substr(is_forged, border - is_forged);
  const std::string_view shard = all.substr(std::min(border + 1, all.size()));
  folder.put("train.bin", shard);
  folder.put("manifest.json",
             is_forged ? forged(manifest, bytes_of(shard)) : std::string(manifest));
  const std::string& path = folder.path();
  attempt([&] { read_examples(path, {.labelled = true, .paired = false}); });
  attempt([&] { read_examples(path, {.labelled = false, .paired = true}); });
  attempt([&] { read_language(path); });
  attempt([&] { recognise(path); });
  return 0;
}
