#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/bytes.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {

/// Sequences of tokens in one file, to be mapped; all numbers little-endian:
///
///     "LWSHARD1" | bytes of a token, 2 or 4 | zero, 4 bytes | the tokens | zeros to a
///     multiple of 8 | where each sequence starts, and where the last ends, in tokens,
///     8 bytes each | the number of sequences, 8 bytes
///
/// The table stands at the end, so that a set of unknown length is written in one go.
class ShardWriter {
 public:
  /// Tokens below 2^16 take two bytes, else four. std::invalid_argument otherwise.
  ShardWriter(const std::string& file, int64_t vocabulary);

  /// std::invalid_argument for an id outside the vocabulary.
  void add(std::span<const int32_t> ids);
  void commit();

  int64_t sequences() const { return static_cast<int64_t>(starts_.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(starts_.back()); }
  uint64_t hash() const { return hash_; }  ///< FNV-1a of the whole file so far
  uint64_t bytes() const { return bytes_; }

 private:
  void put(Bytes bytes);
  template <class Number>
  void put_number(Number number);

  AtomicFile out_;
  int64_t vocabulary_;
  size_t width_;
  std::vector<uint64_t> starts_ = {0};
  uint64_t hash_ = kFnv1aStart, bytes_ = 0;
};

/// A shard, opened, or several that stand one behind another. Structure is checked then
/// (DataError); tokens when they are read.
class Shard {
 public:
  Shard(const std::string& file, int64_t vocabulary);
  /// Over bytes in memory, which must outlive this object.
  Shard(const std::string& name, Bytes bytes, int64_t vocabulary);

  /// The sequences of `next`, of the same vocabulary, behind our own.
  void append(Shard next);

  const std::string& name() const { return name_; }
  int64_t sequences() const { return sequences_ + more_sequences_; }
  int64_t tokens() const { return tokens_ + more_tokens_; }
  int64_t length(int64_t sequence) const;

  /// Where each of the shards that were put together ends, in tokens.
  std::vector<int64_t> ends() const;

  /// Copies tokens [first, first + out.size()) of a sequence. std::out_of_range
  /// beyond its end; DataError for a token outside the vocabulary.
  void read(int64_t sequence, int64_t first, std::span<int64_t> out) const;

  /// The same, as if all sequences were one.
  void read(int64_t first, std::span<int64_t> out) const;

  /// That tokens [first, first + count), as if all sequences were one, will be read
  /// soon: the system fetches them meanwhile, if they are not in memory.
  void will_read(int64_t first, int64_t count) const;

  // Of our own file, without those that were appended.
  uint64_t hash() const { return fnv1a(bytes_); }  ///< reads all of it
  uint64_t bytes() const { return bytes_.size(); }

 private:
  void check();
  uint64_t start(int64_t sequence) const;
  void read_own(int64_t first, std::span<int64_t> out) const;

  std::string name_;
  std::optional<MappedFile> mapped_;
  Bytes bytes_;
  int64_t vocabulary_, sequences_ = 0, tokens_ = 0;
  size_t width_ = 0, table_ = 0;
  std::vector<Shard> more_;  // behind it
  int64_t more_sequences_ = 0, more_tokens_ = 0;
};

}  // namespace lagwise::data
