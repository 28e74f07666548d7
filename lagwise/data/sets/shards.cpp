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
// Version 2 has splits of several shards; of one shard each, a set is written as version
// 1, which older programs read.
constexpr int kVersion = 1, kVersionOfSeveral = 2;
constexpr size_t kMostManifestBytes = size_t{16} << 20;

bool is_split_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-';
         });
}

/// The file of the i-th shard of a split.
std::string shard_file(const std::string& folder, const std::string& split, size_t i) {
  return folder + "/" + split + (i == 0 ? "" : "." + std::to_string(i)) + ".bin";
}

/// One shard as the manifest has it.
struct Entry {
  uint64_t bytes, sequences, tokens;
  std::string hash;
};

struct Read {
  ShardManifest manifest;
  std::map<std::string, std::vector<Entry>> splits;
};

/// Reads a manifest; messages name the key.
class ManifestReader {
 public:
  explicit ManifestReader(const std::string& file) : file_(file) {}

  Read read(const Json& tree) const {
    Read read;
    require(tree.is_object(), "an object");
    require(text(tree, "format") == kFormat, std::string("format '") + kFormat + "'");
    const uint64_t version = number(tree, "version");
    require(version == kVersion || version == kVersionOfSeveral, "version 1 or 2");
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
      std::vector<Entry>& shards = read.splits[name];
      shards.push_back(entry(split));
      if (version == kVersion) continue;
      const Json& more = member(split, "more");
      require(more.is_array(), "a list at 'more'");
      for (const Json& one : more) shards.push_back(entry(one));
    }
    return read;
  }

 private:
  Entry entry(const Json& shard) const {
    return {number(shard, "bytes"), number(shard, "sequences"), number(shard, "tokens"),
            text(shard, "fnv1a")};
  }
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
  // splits, one of them, its list `more`, and a shard in it.
  return ManifestReader(name).read(parse_strict_json(name, 0, text, {.depth = 5}));
}

/// A shard that is what the manifest says; `hashed`: to the last byte.
Shard open_shard(const std::string& file, int64_t vocabulary, const Entry& entry,
                 bool hashed) {
  Shard shard(file, vocabulary);
  if (shard.bytes() != entry.bytes ||
      static_cast<uint64_t>(shard.sequences()) != entry.sequences ||
      static_cast<uint64_t>(shard.tokens()) != entry.tokens)
    throw DataError(file, -1,
                    "the sizes in the manifest: " + std::to_string(entry.bytes) +
                        " bytes, " + std::to_string(entry.sequences) + " sequences, " +
                        std::to_string(entry.tokens) + " tokens");
  if (!hashed) return shard;
  const std::string found = hash_text(shard.hash());
  if (found != entry.hash)
    throw DataError(file, -1,
                    "the hash " + entry.hash.substr(0, 16) + " of the manifest, got " +
                        found + ": it is damaged");
  return shard;
}

}  // namespace

ShardSetWriter::ShardSetWriter(const std::string& folder, ShardManifest manifest,
                               uint64_t most_bytes)
    : folder_(folder), manifest_(std::move(manifest)), most_bytes_(most_bytes) {
  const auto many = static_cast<int64_t>(manifest_.words.size());
  if (many != 0 && many != manifest_.vocabulary)
    throw std::invalid_argument("shards: expected as many words as the vocabulary has");
  [[maybe_unused]] const Vocabulary each_word_once(manifest_.words);
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
  auto& shards = splits_[split];
  if (shards.empty() || shards.back()->bytes() > most_bytes_)
    shards.push_back(std::make_unique<ShardWriter>(
        shard_file(folder_, split, shards.size()), manifest_.vocabulary));
  shards.back()->add(ids);
}

void ShardSetWriter::commit() {
  nlohmann::ordered_json splits = Json::object();
  const auto entry = [](ShardWriter& writer) -> nlohmann::ordered_json {
    writer.commit();
    return {{"bytes", writer.bytes()},
            {"sequences", writer.sequences()},
            {"tokens", writer.tokens()},
            {"fnv1a", hash_text(writer.hash())}};
  };
  const bool several = std::ranges::any_of(
      splits_, [](const auto& split) { return split.second.size() > 1; });
  for (const auto& [name, shards] : splits_) {
    splits[name] = entry(*shards.front());
    if (!several) continue;
    splits[name]["more"] = Json::array();
    for (size_t i = 1; i < shards.size(); ++i)
      splits[name]["more"].push_back(entry(*shards[i]));
  }
  const nlohmann::ordered_json tree = {
      {"format", kFormat},          {"version", several ? kVersionOfSeveral : kVersion},
      {"source", manifest_.source}, {"scheme", manifest_.scheme},
      {"splits", splits},           {"vocabulary", manifest_.vocabulary},
      {"words", manifest_.words},   {"info", manifest_.info}};
  replace_file(folder_ + kManifest, tree.dump(1) + "\n");
}

ShardSet::ShardSet(const std::string& folder, uint64_t most_hashed) : folder_(folder) {
  const std::string file = folder + kManifest;
  const MappedFile mapped(file);
  Read read = parse_manifest(file, mapped.bytes());
  manifest_ = std::move(read.manifest);
  hash_ = kFnv1aStart;
  for (const auto& [name, entries] : read.splits) {
    uint64_t all = 0;
    for (const Entry& entry : entries) all += entry.bytes;
    std::string hashes;
    for (size_t i = 0; i < entries.size(); ++i) {
      Shard shard = open_shard(shard_file(folder, name, i), manifest_.vocabulary,
                               entries[i], all <= most_hashed);
      hashes += entries[i].hash + "\n";
      if (i == 0)
        splits_.emplace(name, std::move(shard));
      else
        splits_.at(name).append(std::move(shard));
    }
    hash_ = fnv1a(bytes_of(name + "\n" + hashes), hash_);
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
