#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/sets/shards.h"

namespace lagwise::data {

/// A stream of bytes as tokens: parts of mapped files one after another, or a shard.
class ByteStream {
 public:
  ByteStream() = default;
  explicit ByteStream(const Shard* shard) : shard_(shard) {}

  void append(Bytes part);  ///< which must outlive this object

  int64_t size() const { return shard_ ? shard_->tokens() : size_; }
  /// Copies bytes [first, first + out.size()). std::out_of_range beyond the end.
  void read(int64_t first, std::span<int64_t> out) const;
  const std::vector<Bytes>& parts() const { return parts_; }

  /// Where each shard of a prepared set ends; else where the stream does.
  std::vector<int64_t> shard_ends() const {
    return shard_ ? shard_->ends() : std::vector<int64_t>{size_};
  }
  /// That these bytes will be read soon: those of a shard are fetched meanwhile.
  void will_read(int64_t first, int64_t count) const {
    if (shard_) shard_->will_read(first, count);
  }

 private:
  const Shard* shard_ = nullptr;
  std::vector<Bytes> parts_;
  std::vector<int64_t> starts_;  // of the parts
  int64_t size_ = 0;
};

/// Text by split, whatever it lies in:
///
///     a prepared set                    of `lagwise data language`
///     wiki.{train,valid,test}.tokens    WikiText, or .raw; those that are there
///     {train,valid,test}.txt            train and valid for sure
///     a file, or a folder of .txt       one after another: the end is test, what
///                                       stands before it valid, the rest train
class ByteCorpus {
 public:
  /// `valid`, `test`: fractions, for a corpus without splits of its own. DataError for
  /// what is missing, empty or damaged.
  ByteCorpus(const std::string& path, double valid, double test);
  ByteCorpus(const ByteCorpus&) = delete;

  bool has(const std::string& split) const { return splits_.contains(split); }
  /// std::invalid_argument lists the splits there are.
  const ByteStream& split(const std::string& name) const;
  std::vector<std::string> splits() const;

  /// The files it was read from; none for a prepared set.
  std::vector<std::string> files() const;

  /// Words of a split as WikiText counts them; 0 for a corpus that defines none.
  int64_t words(const std::string& split) const;

  /// Over the bytes of each split: reads all of a corpus that is not prepared.
  uint64_t hash() const;

 private:
  void open_set();
  bool open_wikitext_files();
  bool open_split_files();
  void open_plain(double valid, double test);
  void take_part(const std::string& split, int64_t begin, int64_t end);

  std::string path_;
  bool counts_words_ = false;
  std::unique_ptr<ShardSet> shards_;
  std::vector<MappedFile> files_;
  std::map<std::string, ByteStream> splits_;
};

}  // namespace lagwise::data
