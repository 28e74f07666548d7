#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lagwise/data/sets/shard.h"

namespace lagwise::data {

/// What a set of shards says of itself.
struct ShardManifest {
  std::string source;              ///< how it was made, for people
  std::string scheme;              ///< how text or music became tokens: "remi", "bytes"
  int64_t vocabulary = 0;          ///< how many different tokens
  std::vector<std::string> words;  ///< their names, where they have some; else empty
  std::map<std::string, std::string> info;  ///< what else the maker wants to keep
};

/// Writes a folder of tokenised sequences: shards for each split, train.bin, train.1.bin
/// and so on, and manifest.json, which is written last. So a set with a manifest is whole;
/// one without is none.
class ShardSetWriter {
 public:
  static constexpr uint64_t kShardBytes = uint64_t{1} << 30;

  /// Makes the folder. A manifest of an earlier set goes first, for its shards will. A
  /// shard that has more than `most_bytes` is full: the next sequence begins another.
  ShardSetWriter(const std::string& folder, ShardManifest manifest,
                 uint64_t most_bytes = kShardBytes);
  ~ShardSetWriter();

  /// `split`: letters, digits, "_", "-".
  void add(const std::string& split, std::span<const int32_t> ids);
  /// What is known only once all has been read.
  void note(const std::string& key, const std::string& info) {
    manifest_.info[key] = info;
  }
  void commit();

 private:
  std::string folder_;
  ShardManifest manifest_;
  uint64_t most_bytes_;
  std::map<std::string, std::vector<std::unique_ptr<ShardWriter>>> splits_;
};

/// A folder of shards, opened: the manifest is checked, and each shard's structure and
/// size against it. DataError for what does not hold.
///
/// A split of up to `most_hashed` bytes is read once and held against its hashes, too.
/// Those of a larger one were found when it was prepared, and are believed: to read
/// terabytes before the first step, on every machine, helps nobody.
class ShardSet {
 public:
  static constexpr uint64_t kMostHashed = uint64_t{4} << 30;
  explicit ShardSet(const std::string& folder, uint64_t most_hashed = kMostHashed);

  const ShardManifest& manifest() const { return manifest_; }
  std::vector<std::string> splits() const;
  /// std::invalid_argument lists the splits there are.
  const Shard& split(const std::string& name) const;

  /// Identifies the contents: FNV-1a over the hashes of the splits and the words.
  uint64_t hash() const { return hash_; }

 private:
  std::string folder_;
  ShardManifest manifest_;
  std::map<std::string, Shard> splits_;
  uint64_t hash_ = 0;
};

/// Whether a folder is a prepared set: it has a manifest.json.
bool is_shard_set(const std::string& folder);

/// The manifest's text: a strict JSON object. For tests and tools.
void check_shard_manifest(const std::string& name, Bytes text);

}  // namespace lagwise::data
