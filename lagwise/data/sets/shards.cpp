#include "lagwise/data/sets/shards.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/strict_json.h"
#include "lagwise/data/sets/vocabulary.h"

namespace lagwise::data {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char *kManifest = "/manifest.json", *kFormat = "lagwise shards";
constexpr int kVersion = 1;
constexpr size_t kMostManifestBytes = size_t{16} << 20;

bool is_split_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-';
         });
}

/// One split as the manifest has it.
struct Entry {
  uint64_t bytes, sequences, tokens;
  std::string hash;
};

struct Read {
  ShardManifest manifest;
  std::map<std::string, Entry> splits;
};

/// Reads a manifest; messages name the key.
class ManifestReader {
 public:
  explicit ManifestReader(const std::string& file) : file_(file) {}

  Read read(const Json& tree) const {
    Read read;
    require(tree.is_object(), "an object");
    require(text(tree, "format") == kFormat, std::string("format '") + kFormat + "'");
    require(number(tree, "version") == kVersion, "version 1");
    read.manifest.source = text(tree, "source");
    read.manifest.scheme = text(tree, "scheme");
    const uint64_t vocabulary = number(tree, "vocabulary");
    require(vocabulary >= 1 && vocabulary <= INT32_MAX,
            "a vocabulary of 1 to 2^31 - 1");
    read.manifest.vocabulary = static_cast<int64_t>(vocabulary);
    words(member(tree, "words"), vocabulary, read.manifest.words);
    for (const auto& [key, value] : object(tree, "info").items()) {
      require(value.is_string(), "texts in info");
      read.manifest.info[key] = value.get<std::string>();
    }
    for (const auto& [name, split] : object(tree, "splits").items()) {
      require(is_split_name(name), "splits named with letters and digits");
      read.splits[name] = {number(split, "bytes"), number(split, "sequences"),
                           number(split, "tokens"), text(split, "fnv1a")};
    }
    return read;
  }

 private:
  void require(bool holds, const std::string& expected) const {
    if (!holds) throw DataError(file_, -1, expected);
  }
  const Json& member(const Json& tree, const char* key) const {
    require(tree.is_object() && tree.contains(key), std::string("a key '") + key + "'");
    return tree[key];
  }
  const Json& object(const Json& tree, const char* key) const {
    require(member(tree, key).is_object(), std::string("an object at '") + key + "'");
    return tree[key];
  }
  std::string text(const Json& tree, const char* key) const {
    require(member(tree, key).is_string(), std::string("a text at '") + key + "'");
    return tree[key].get<std::string>();
  }
  uint64_t number(const Json& tree, const char* key) const {
    require(member(tree, key).is_number_unsigned(),
            std::string("a whole number at '") + key + "'");
    return tree[key].get<uint64_t>();
  }
  void words(const Json& list, uint64_t vocabulary,
             std::vector<std::string>& out) const {
    require(list.is_array() && (list.empty() || list.size() == vocabulary),
            "as many words as the vocabulary has, or none");
    for (const Json& word : list) {
      require(word.is_string(), "words that are texts");
      out.push_back(word.get<std::string>());
    }
    try {
      Vocabulary{out};
    } catch (const std::invalid_argument& error) {
      require(false, error.what());
    }
  }

  const std::string& file_;
};

Read parse_manifest(const std::string& name, Bytes text) {
  if (text.size() > kMostManifestBytes)
    throw DataError(name, static_cast<int64_t>(kMostManifestBytes),
                    "at most 16 MB of manifest");
  return ManifestReader(name).read(parse_strict_json(name, 0, text));
}

}  // namespace

ShardSetWriter::ShardSetWriter(const std::string& folder, ShardManifest manifest)
    : folder_(folder), manifest_(std::move(manifest)) {
  const auto many = static_cast<int64_t>(manifest_.words.size());
  if (many != 0 && many != manifest_.vocabulary)
    throw std::invalid_argument("shards: expected as many words as the vocabulary has");
  Vocabulary{manifest_.words};  // each word once
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw std::runtime_error("cannot make folder " + folder + ": " + failed.message());
  fs::remove(folder + kManifest, failed);
}

ShardSetWriter::~ShardSetWriter() = default;

void ShardSetWriter::add(const std::string& split, std::span<const int32_t> ids) {
  if (!is_split_name(split))
    throw std::invalid_argument(
        "shards: expected a split named with letters and digits");
  auto& writer = splits_[split];
  if (!writer)
    writer = std::make_unique<ShardWriter>(folder_ + "/" + split + ".bin",
                                           manifest_.vocabulary);
  writer->add(ids);
}

void ShardSetWriter::commit() {
  nlohmann::ordered_json splits = Json::object();
  for (const auto& [name, writer] : splits_) {
    writer->commit();
    splits[name] = {{"bytes", writer->bytes()},
                    {"sequences", writer->sequences()},
                    {"tokens", writer->tokens()},
                    {"fnv1a", hash_text(writer->hash())}};
  }
  const nlohmann::ordered_json tree = {
      {"format", kFormat},          {"version", kVersion},
      {"source", manifest_.source}, {"scheme", manifest_.scheme},
      {"splits", splits},           {"vocabulary", manifest_.vocabulary},
      {"words", manifest_.words},   {"info", manifest_.info}};
  replace_file(folder_ + kManifest, tree.dump(1) + "\n");
}

ShardSet::ShardSet(const std::string& folder) : folder_(folder) {
  const std::string file = folder + kManifest;
  const MappedFile mapped(file);
  Read read = parse_manifest(file, mapped.bytes());
  manifest_ = std::move(read.manifest);
  hash_ = kFnv1aStart;
  for (const auto& [name, entry] : read.splits) {
    const std::string shard_file = folder + "/" + name + ".bin";
    Shard shard(shard_file, manifest_.vocabulary);
    if (shard.bytes() != entry.bytes ||
        static_cast<uint64_t>(shard.sequences()) != entry.sequences ||
        static_cast<uint64_t>(shard.tokens()) != entry.tokens)
      throw DataError(shard_file, -1,
                      "the sizes in the manifest: " + std::to_string(entry.bytes) +
                          " bytes, " + std::to_string(entry.sequences) +
                          " sequences, " + std::to_string(entry.tokens) + " tokens");
    const std::string found = hash_text(shard.hash());
    if (found != entry.hash)
      throw DataError(shard_file, -1,
                      "the hash " + entry.hash.substr(0, 16) +
                          " of the manifest, got " + found + ": it is damaged");
    hash_ = fnv1a(bytes_of(name + "\n" + entry.hash + "\n"), hash_);
    splits_.emplace(name, std::move(shard));
  }
  for (const std::string& word : manifest_.words)
    hash_ = fnv1a(bytes_of(word + "\n"), hash_);
}

std::vector<std::string> ShardSet::splits() const {
  std::vector<std::string> names;
  for (const auto& [name, split] : splits_) names.push_back(name);
  return names;
}

const Shard& ShardSet::split(const std::string& name) const {
  const auto found = splits_.find(name);
  if (found != splits_.end()) return found->second;
  std::string all;
  for (const std::string& one : splits()) all += (all.empty() ? "" : ", ") + one;
  throw std::invalid_argument("no split '" + name + "' in " + folder_ + "; it has " +
                              all);
}

bool is_shard_set(const std::string& folder) {
  std::error_code failed;
  return fs::is_regular_file(folder + kManifest, failed);
}

void check_shard_manifest(const std::string& name, Bytes text) {
  parse_manifest(name, text);
}

}  // namespace lagwise::data
